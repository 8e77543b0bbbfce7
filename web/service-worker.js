// @ts-check
/// <reference lib="webworker" />
// Opens the page at once, and without a connection, from a cache of its files and of its HTML, which has nothing of a user.
// It answers nothing else: what users see and change comes from the server and from the page's own stores.
// It also shows all notifications: those that the server pushes, and those that an open page fetches.
const worker = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self));
const { scope } = worker.registration;
/** The server puts the hash and the names of the present files here. */
const VERSION = "HASH";
const FILES = /** @type {string[]} */ ([/* FILES */]);
/** Of this installation: others may be below other paths of the host. */
const CACHES = `todo-page ${scope} `;
const PAGE = scope;
/** As in backend/api/page/routes.py. */
const ADDRESSES = /^(today|upcoming|all|done|deleted|t\/[1-9]\d{0,17}|c\/thr_[0-9a-f]{32})?$/;
const TEXTS = {
  name: "To-do assistant",
  browser: "This browser",
  unreadable: "There is a notification. Open your tasks to see it.",
  actions: [
    { action: "done", title: "Done" },
    { action: "snooze", title: "In 10 minutes" },
    { action: "open", title: "Open" }, // most browsers show two buttons, and open at a click on the notification itself
  ],
};
const UNREADABLE = "unreadable"; // shorter than any key
const SNOOZE_MINUTES = 10;
const ATTEMPTS = [0, 3_000, 15_000, 45_000]; // ms before each: browsers end a worker that takes minutes
const RESPONSE_TIME = 5_000; // ms: a window can be opened for a few seconds after a click

/** An alert as the server pushes it, or as an open page fetches it, without `proof`; its notification replaces the one with the same key. @typedef {{key: string, title: string, body: string, url: string, proof: string | null, actions: boolean}} Alert */

worker.addEventListener("install", (event) => event.waitUntil(install()));
worker.addEventListener("activate", (event) => event.waitUntil(activate()));
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const { href, pathname } = new URL(request.url);
  if (request.method !== "GET" || !href.startsWith(scope)) return;
  const path = pathname.slice(new URL(scope).pathname.length);
  if (path.startsWith("assets/")) event.respondWith(answerFile(request));
  else if (request.mode === "navigate" && ADDRESSES.test(path)) event.respondWith(answerPage(event));
});

async function install() {
  const page = await fetch(PAGE, { cache: "no-store" });
  if (!(await page.clone().text()).includes(`"assets/${VERSION}/`)) throw new Error("the page is of another version");
  await caches.delete(CACHES + VERSION); // a version that comes back becomes the newest
  const cache = await caches.open(CACHES + VERSION);
  try {
    await Promise.all([cache.put(PAGE, page), cache.addAll(FILES.map((file) => new URL(file, scope).href))]);
  } catch (error) {
    await caches.delete(CACHES + VERSION); // otherwise an unusable one would count as the newest
    throw error;
  }
  await worker.skipWaiting();
}

/** Deletes older caches, but the newest of them: open pages still load modules of that version. */
async function activate() {
  const names = (await caches.keys()).filter((name) => name.startsWith(CACHES));
  for (const name of names.slice(0, -2)) await caches.delete(name);
  await worker.clients.claim();
}

/** @param {Request} request */
async function answerFile(request) {
  return (await caches.match(request)) ?? fetch(request);
}

/** Answers with the stored page, and stores what it is now, for the next visit. @param {FetchEvent} event */
async function answerPage(event) {
  const cache = await caches.open(CACHES + VERSION);
  const stored = await cache.match(PAGE);
  if (!stored) return fetch(event.request);
  event.waitUntil(renew(cache).catch(() => {})); // there is no connection
  return stored;
}

/** @param {Cache} cache */
async function renew(cache) {
  const page = await fetch(PAGE, { cache: "no-store" });
  if (!page.ok) return;
  if ((await page.clone().text()).includes(`"assets/${VERSION}/`)) await cache.put(PAGE, page);
  else await worker.registration.update();
}

worker.addEventListener("push", (event) => event.waitUntil(show(readAlert(event.data))));
worker.addEventListener("message", (event) => {
  for (const alert of event.data?.alerts ?? []) event.waitUntil(show(alert)); // of an open page
});
worker.addEventListener("notificationclick", (event) => event.waitUntil(act(event)));
worker.addEventListener("notificationclose", (event) => event.waitUntil(acknowledge(event.notification.data, [0])));
worker.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(subscribeAgain(event)));

/** Browsers demand that every push is shown, also one that cannot be read. @param {PushMessageData | null} data @returns {Alert} */
function readAlert(data) {
  try {
    const alert = data?.json();
    if (typeof alert.key === "string" && typeof alert.title === "string") return alert;
  } catch {
    // a push of another version, or of nobody
  }
  return { key: UNREADABLE, title: TEXTS.name, body: TEXTS.unreadable, url: "", proof: null, actions: false };
}

/** Shows an alert, and then tells the server that it was shown. @param {Alert} alert */
async function show({ key, title, body, url, proof, actions }) {
  const data = { key, proof, url };
  await notify(title, body, { tag: key, data, ...(actions && { actions: TEXTS.actions }) });
  await acknowledge(data, ATTEMPTS);
}

/** @param {string} title @param {string} body @param {object} options */
async function notify(title, body, options) {
  const icon = new URL(`assets/${VERSION}/icons/192.png`, scope).href;
  await worker.registration.showNotification(plain(title), { body: plain(body), icon, ...options });
}

/** Removes the characters that reorder others, as in web/words.js. @param {unknown} text */
const plain = (text) => String(text ?? "").replace(/\p{Bidi_Control}/gu, "");

/**
 * Tells the server that an alert was shown, again if it cannot be reached. Of a push, the proof says it, without a session.
 * @param {{key?: string, proof?: string | null} | null} data @param {number[]} attempts
 */
async function acknowledge(data, attempts) {
  if (!data?.key || data.key === UNREADABLE) return;
  for (const pause of attempts) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    const sent = data.proof ? post("alerts/shown", { proof: data.proof }) : post(`alerts/${encodeURIComponent(data.key)}/shown`, {});
    const response = await sent.catch(() => null);
    if (response && response.status < 500 && response.status !== 429) return;
  }
}

/** @param {string} path @param {object} body */
const post = (path, body) =>
  fetch(new URL(path, scope), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(RESPONSE_TIME),
  });

/** Does what a button of the notification says; opens the page if there is none, or if it fails. @param {NotificationEvent} event */
async function act({ notification, action }) {
  const { title, tag, data } = notification;
  notification.close();
  const acknowledged = acknowledge(data, [0]);
  const result = await request(data?.key, action).catch(() => null);
  if (!result) await open(data?.url);
  else if (!result.done) await notify(title, result.message, { tag, data: { url: data.url } });
  else if (action === "snooze") for (const page of await worker.clients.matchAll({ type: "window" })) page.postMessage({ snoozed: true });
  await acknowledged;
}

/** Asks the server to do it. Returns null if there is nothing to do, or if it fails; `done` is false if the task has changed since. @param {unknown} key @param {string} action @returns {Promise<{done: boolean, message: string} | null>} */
async function request(key, action) {
  if (action !== "done" && action !== "snooze") return null;
  const response = await post(`alerts/${encodeURIComponent(String(key))}/${action}`, action === "snooze" ? { minutes: SNOOZE_MINUTES } : {});
  return response.ok ? response.json() : null;
}

/** Shows an address of the page: in a window that is open, else in a new one. @param {unknown} url */
async function open(url) {
  const address = addressOf(url);
  const windows = await worker.clients.matchAll({ type: "window" });
  const page = windows.find(({ url: shown }) => ADDRESSES.test(pathOf(shown))); // not the one that asks for a program
  if (!page) return void (await worker.clients.openWindow(address));
  page.postMessage({ open: address });
  await page.focus();
}

/**
 * Returns the address of the page that an alert names, here: the server may know itself by another name than this browser does.
 * What is none of the page becomes the page itself.
 * @param {unknown} url
 */
function addressOf(url) {
  const path = URL.canParse(String(url), scope) ? pathOf(String(url)) : "";
  return new URL(ADDRESSES.test(path) ? path : "", scope).href;
}

/** The path below this installation. @param {string} url */
const pathOf = (url) => new URL(url, scope).pathname.slice(new URL(scope).pathname.length);

/** The push service has ended the subscription. The page subscribes when it is opened next, if this fails. @param {Event} event */
async function subscribeAgain(event) {
  const { oldSubscription, newSubscription } = /** @type {{oldSubscription?: PushSubscription, newSubscription?: PushSubscription}} */ (/** @type {unknown} */ (event));
  const { pushManager } = worker.registration;
  const applicationServerKey = oldSubscription?.options.applicationServerKey;
  if (!newSubscription && !applicationServerKey) return;
  const subscription = newSubscription ?? (await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey }));
  await post("alerts/channels", { kind: "push", name: TEXTS.browser, target: subscription.toJSON() });
}

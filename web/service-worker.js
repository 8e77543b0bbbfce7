// @ts-check
/// <reference lib="webworker" />
// Opens the page at once, and without a connection, from a cache of its files and of its HTML, which has nothing of a user.
// It answers nothing else: what users see and change comes from the server and from the page's own stores.
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

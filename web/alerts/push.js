// @ts-check
import { storage } from "../chat/storage.js";
import { fetchFromHere, user } from "../http.js";
import { DEVICE } from "./page-texts.js";
/** @import {Channel, Settings} from "./types" */

/** What the server has of this browser: the id of the channel, who was signed in, and the address of the subscription. */
const KEY = "todo.push";
const READY = 5000; // ms that the service worker may take

/** A push that cannot be subscribed to; the message is a sentence for the user. */
export class PushProblem extends Error {}

/** Returns why nothing can reach this browser while the page is closed, and what to do; null if something can. */
export function findObstacle() {
  if (!isSecureContext) return DEVICE.insecure;
  if (isAppleTouch() && !matchMedia("(display-mode: standalone)").matches) return DEVICE.homeScreen;
  if (!("serviceWorker" in navigator && "PushManager" in window && "Notification" in window)) return DEVICE.unsupported;
  return Notification.permission === "denied" ? DEVICE.denied : null;
}

/** An iPad says that it is a Mac, which has no touch screen. */
const isAppleTouch = () => /iPhone|iPad|iPod/.test(navigator.userAgent) || (navigator.userAgent.includes("Macintosh") && navigator.maxTouchPoints > 1);

/** Asks for the permission, and returns what the server needs for sending to this browser. @param {string} key the server's public key @param {boolean} isEnded whether the subscription that the server has is of no use */
export async function subscribe(key, isEnded) {
  if ((await Notification.requestPermission()) !== "granted") throw new PushProblem(DEVICE.denied);
  if (isEnded) await unsubscribe();
  const registration = await findRegistration();
  if (!registration) throw new PushProblem(DEVICE.noWorker);
  return subscribeWith(registration.pushManager, key);
}

/** @param {PushManager} pushManager @param {string} key */
async function subscribeWith(pushManager, key) {
  const options = { userVisibleOnly: true, applicationServerKey: key };
  try {
    return await pushManager.subscribe(options).catch(async (error) => {
      if (error.name !== "InvalidStateError") throw error;
      await unsubscribe(); // it was made for another key, of another server at this address
      return pushManager.subscribe(options);
    });
  } catch {
    throw new PushProblem(DEVICE.noService);
  }
}

export async function unsubscribe() {
  storage.set(KEY, null);
  const registration = await findRegistration();
  await (await registration?.pushManager?.getSubscription())?.unsubscribe().catch(() => false);
}

/** Gives the subscription to the server. @param {PushSubscription} subscription */
export async function register(subscription) {
  const body = JSON.stringify({ kind: "push", name: await findName(), target: subscription.toJSON() });
  const response = await fetchFromHere("alerts/channels", { method: "POST", headers: { "Content-Type": "application/json" }, body }).catch(() => null);
  if (response?.ok) storage.set(KEY, JSON.stringify({ channel: (await response.clone().json()).id, ...describe(subscription) }));
  return response;
}

/** Returns the channel of this browser. Without sign-in there is no session by which the server could know it. @param {Channel[]} channels */
export function findOwnChannel(channels) {
  const { channel } = stored();
  return channels.find(({ id, this_device }) => this_device || id === channel);
}

/**
 * Makes the browser and the server agree about this device: a new sign-in takes the channel over, and a browser can lose its
 * subscription. A channel that was removed elsewhere ends the subscription here.
 * @param {Settings} settings
 */
export async function reconcile({ channels, push_key }) {
  if (findObstacle() || Notification.permission !== "granted") return;
  const { pushManager } = (await findRegistration()) ?? {};
  const subscription = (await pushManager?.getSubscription()) ?? null;
  const hasChannel = findOwnChannel(channels) !== undefined;
  const { session, endpoint } = stored();
  const isKnown = subscription?.endpoint === endpoint && session === user.session;
  if (subscription && isKnown && !hasChannel) await unsubscribe();
  else if (subscription && !isKnown) await register(subscription);
  else if (!subscription && hasChannel && pushManager) await register(await subscribeWith(pushManager, push_key));
}

/** @returns {{channel?: number, session?: string | null, endpoint?: string}} */
const stored = () => JSON.parse(storage.get(KEY) ?? "{}");

/** @param {PushSubscription} subscription */
const describe = ({ endpoint }) => ({ session: user.session, endpoint });

/** Returns how the server calls this browser. */
async function findName() {
  const response = await fetchFromHere("sessions").catch(() => null);
  /** @type {{sessions: {name: string, is_current: boolean}[]}} */
  const { sessions } = response?.ok ? await response.json() : { sessions: [] };
  return sessions.find(({ is_current }) => is_current)?.name || DEVICE.name;
}

/** Returns the registration of the service worker; null if there is none within seconds. @returns {Promise<ServiceWorkerRegistration | null>} */
export function findRegistration() {
  if (!navigator.serviceWorker) return Promise.resolve(null);
  const late = new Promise((resolve) => setTimeout(() => resolve(null), READY));
  return Promise.race([navigator.serviceWorker.ready, /** @type {Promise<null>} */ (late)]);
}

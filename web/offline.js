// @ts-check
import { LastSeen } from "./database.js";
import { byId } from "./shell/elements.js";
import { TEXTS } from "./texts.js";

const CACHES = "todo-page ";

/** Whether this browser can open the page without a connection: it needs https or localhost. */
const canWorkOffline = () => isSecureContext && "serviceWorker" in navigator;

/** Registers the service worker, and says when one of a newer version has taken over. @param {(address: URL) => void} open shows the address of a notification that was clicked @param {() => void} snoozed a task was snoozed by one */
export async function openOffline(open, snoozed) {
  if (!canWorkOffline()) return;
  const { serviceWorker } = navigator;
  const { worker } = window.early;
  window.early.worker = null;
  if (worker && worker !== serviceWorker.controller) showNewVersion(); // it has taken over already
  let replaces = serviceWorker.controller !== null;
  serviceWorker.oncontrollerchange = () => {
    if (replaces) showNewVersion();
    replaces = true;
  };
  serviceWorker.onmessage = ({ data }) => {
    if (data?.open) open(new URL(data.open, document.baseURI));
    if (data?.snoozed) snoozed();
  };
  await serviceWorker.register(workerUrl(), { updateViaCache: "none" }).catch(() => {}); // there is no connection
}

function showNewVersion() {
  const reload = Object.assign(document.createElement("button"), { type: "button", className: "button", textContent: TEXTS.reload });
  reload.addEventListener("click", () => location.reload());
  const message = Object.assign(document.createElement("p"), { className: "said", textContent: TEXTS.newVersion });
  message.append(" ", reload);
  byId("said").replaceChildren(message);
}

/** Removes what would open the page and show what was seen last. */
export async function closeOffline() {
  await LastSeen.deleteAll();
  if (!canWorkOffline()) return;
  const registration = await navigator.serviceWorker.getRegistration(document.baseURI);
  await registration?.unregister();
  for (const name of await caches.keys()) if (name.startsWith(`${CACHES}${document.baseURI} `)) await caches.delete(name);
}

/** @typedef {{createPolicy: (name: string, rules: object) => {createScriptURL: (url: string) => string}}} TrustedTypes */

/** @type {{createScriptURL: (url: string) => string} | undefined} */
const policy = /** @type {{trustedTypes?: TrustedTypes}} */ (/** @type {unknown} */ (window)).trustedTypes?.createPolicy("service-worker", {
  createScriptURL: (/** @type {string} */ url) => url,
});

/** The address of the worker, declared as one of our scripts where browsers with trusted types demand it. */
function workerUrl() {
  const url = new URL("service-worker.js", document.baseURI).href;
  return policy?.createScriptURL(url) ?? url;
}

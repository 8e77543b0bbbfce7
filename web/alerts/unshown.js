// @ts-check
import { showInPage, removeFromPage } from "./in-page.js";
import { findRegistration, reconcile } from "./push.js";
/** @import {Page} from "./in-page.js" */
/** @import {Alert, Settings} from "./types" */

const PAUSE = 20_000; // ms

/**
 * Shows what was not pushed, while the page is open and notifications are on. The service worker shows it like a push, under the
 * same tag, so that several tabs show one notification; the page itself shows it where notifications are not allowed.
 */
export class UnshownAlerts {
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;
  /** Counts the beginnings: a response of before the last one is dropped. */
  #begun = 0;
  #page;

  /** @param {Page} page */
  constructor(page) {
    this.#page = page;
    document.addEventListener("visibilitychange", () => this.#timer !== undefined && !document.hidden && void this.#check());
  }

  /** Begins to look, if the user has notifications on. */
  async begin() {
    this.end();
    const begun = this.#begun;
    /** @type {Settings | null} */
    const settings = await this.#read("alerts/settings");
    if (!settings?.on || begun !== this.#begun) return;
    this.#timer = setInterval(() => void this.#check(), PAUSE);
    await reconcile(settings).catch(() => {}); // the next visit tries again
    if (begun === this.#begun) await this.#check();
  }

  end() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#begun += 1;
    removeFromPage();
  }

  async #check() {
    const begun = this.#begun;
    const worker = await findNotifyingWorker();
    if (!worker && document.hidden) return; // nobody would see it in the page
    /** @type {{alerts: Alert[]} | null} */
    const unshown = await this.#read("alerts/unshown");
    if (!unshown || begun !== this.#begun) return;
    if (!worker) showInPage(unshown.alerts, this.#page);
    else if (unshown.alerts.length > 0) worker.postMessage({ alerts: unshown.alerts });
  }

  /** @param {string} path @returns {Promise<any>} null without a successful response */
  async #read(path) {
    const response = await this.#page.send(path, { cache: "no-store" }).catch(() => null);
    return response?.ok ? response.json().catch(() => null) : null;
  }
}

/** Returns the service worker, if it may show notifications. */
async function findNotifyingWorker() {
  if (!("Notification" in globalThis) || Notification.permission !== "granted") return null;
  return (await findRegistration())?.active ?? null;
}

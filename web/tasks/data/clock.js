// @ts-check
/** @import {Moment} from "../types" */

/** The user's local time, set by each response of the server. */
export class Clock {
  #serverTime = localNow();
  #receivedAt = performance.now();
  /** @type {Intl.DateTimeFormat | null} */
  #dayFormat = null;

  /** @param {string} now like "2026-11-23T11:20" @param {string} zone */
  set(now, zone) {
    this.#serverTime = Date.parse(`${now.slice(0, 16)}Z`);
    this.#receivedAt = performance.now();
    if (this.#dayFormat?.resolvedOptions().timeZone === zone) return;
    try {
      this.#dayFormat = new Intl.DateTimeFormat("en", { timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit" });
    } catch {
      this.#dayFormat = null; // the browser does not know this zone
    }
  }

  /** @returns {Moment} */
  get now() {
    const text = new Date(this.#serverTime + performance.now() - this.#receivedAt).toISOString();
    return { day: text.slice(0, 10), time: text.slice(11, 16) };
  }

  /** Returns the day of an instant in the user's zone. @param {string} instant */
  dayOf(instant) {
    if (!this.#dayFormat) return instant.slice(0, 10);
    const parts = Object.fromEntries(this.#dayFormat.formatToParts(new Date(instant)).map(({ type, value }) => [type, value]));
    return `${parts.year}-${parts.month}-${parts.day}`;
  }
}

/** Returns the browser's local time as if it were UTC. */
function localNow() {
  const now = new Date();
  return now.getTime() - now.getTimezoneOffset() * 60_000;
}

// @ts-check
/** @import {Moment} from "../types" */

/** The person's wall clock, as the server tells it; it goes on by itself between answers. */
export class Clock {
  #told = localNow();
  #at = performance.now();
  /** @type {Intl.DateTimeFormat | null} */
  #days = null;

  /** @param {string} now like "2026-11-23T11:20" @param {string} zone */
  set(now, zone) {
    this.#told = Date.parse(`${now.slice(0, 16)}Z`);
    this.#at = performance.now();
    if (this.#days?.resolvedOptions().timeZone === zone) return;
    try {
      this.#days = new Intl.DateTimeFormat("en", { timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit" });
    } catch {
      this.#days = null; // a zone that this browser does not know
    }
  }

  /** @returns {Moment} */
  get now() {
    const text = new Date(this.#told + performance.now() - this.#at).toISOString();
    return { day: text.slice(0, 10), time: text.slice(11, 16) };
  }

  /** The day of an instant where the person is. @param {string} instant */
  dayOf(instant) {
    if (!this.#days) return instant.slice(0, 10);
    const parts = Object.fromEntries(this.#days.formatToParts(new Date(instant)).map(({ type, value }) => [type, value]));
    return `${parts.year}-${parts.month}-${parts.day}`;
  }
}

/** This browser's own clock, as if it stood at UTC. */
function localNow() {
  const now = new Date();
  return now.getTime() - now.getTimezoneOffset() * 60_000;
}

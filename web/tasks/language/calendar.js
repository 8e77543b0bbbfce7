// @ts-check
/** Days are texts like "2026-11-27", without a zone, and are compared as texts. */

const DAY = 86_400_000; // ms

/** @param {number} moment */
const iso = (moment) => new Date(moment).toISOString().slice(0, 10);

/** @param {string} day @param {number} count */
export const plusDays = (day, count) => iso(Date.parse(day) + count * DAY);

/** Monday is 0. @param {string} day */
export const weekdayOf = (day) => (new Date(day).getUTCDay() + 6) % 7;

/** @param {string} day */
export const yearOf = (day) => Number(day.slice(0, 4));

/** Returns the number of days between two days. @param {string} from @param {string} to */
export const between = (from, to) => Math.round((Date.parse(to) - Date.parse(from)) / DAY);

/** Returns the Monday of this week, or of a later one. @param {string} today */
export const week = (today, later = 0) => plusDays(today, 7 * later - weekdayOf(today));

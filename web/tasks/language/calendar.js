// @ts-check
/** Days are texts like "2026-11-27": they float, as the tasks' own do, and are compared as texts. */

const DAY = 86_400_000; // ms

/** @param {number} moment */
const iso = (moment) => new Date(moment).toISOString().slice(0, 10);

/** @param {number} year @param {number} month from 0, or from another year @param {number} day */
const made = (year, month, day) => iso(Date.UTC(year, month, day));

/** @param {string} day @param {number} count */
export const plusDays = (day, count) => iso(Date.parse(day) + count * DAY);

/** Monday is 0. @param {string} day */
export const weekdayOf = (day) => (new Date(day).getUTCDay() + 6) % 7;

/** @param {string} day */
export const yearOf = (day) => Number(day.slice(0, 4));

/** Days from one to another. @param {string} from @param {string} to */
export const between = (from, to) => Math.round((Date.parse(to) - Date.parse(from)) / DAY);

/** The same day of another month, or that month's last if it is shorter. @param {string} day @param {number} count */
export function plusMonths(day, count) {
  const [year, month, date] = day.split("-").map(Number);
  const last = made(year, month + count, 0);
  return last.slice(0, 8) + String(Math.min(date, Number(last.slice(8)))).padStart(2, "0");
}

/** @param {string} day @param {number} count @param {string} unit day, week, month or year */
export function plus(day, count, unit) {
  if (unit === "day" || unit === "week") return plusDays(day, count * (unit === "week" ? 7 : 1));
  return plusMonths(day, count * (unit === "year" ? 12 : 1));
}

/** The Monday of this week, or of one so many weeks later. @param {string} today */
export const week = (today, later = 0) => plusDays(today, 7 * later - weekdayOf(today));

/** The first day of this month, or of one so many months later. @param {string} today */
export const month = (today, later = 0) => plusMonths(`${today.slice(0, 8)}01`, later);

/** @param {string} today */
export const lastOfMonth = (today, later = 0) => plusDays(month(today, later + 1), -1);

/** The day of this number in a month, null if it has none. @param {string} first the month's first @param {number} number */
export function dayIn(first, number) {
  const day = first.slice(0, 8) + String(number).padStart(2, "0");
  return number >= 1 && day <= lastOfMonth(first) ? day : null;
}

/** Whether any calendar has it. @param {string} text */
export const isDay = (text) => dayIn(`${text.slice(0, 8)}01`, Number(text.slice(8))) === text;

// @ts-check
import { between, yearOf } from "./tasks/language/calendar.js";
/** @import {Moment, Task} from "./tasks/types" */

/** Dates in the user's language. `Intl` formats them in UTC, because days are texts without a zone. */
const format = (/** @type {Intl.DateTimeFormatOptions} */ options) => new Intl.DateTimeFormat(undefined, { timeZone: "UTC", ...options });
const WEEKDAY = format({ weekday: "long" });
const SHORT = format({ day: "numeric", month: "short" });
const WITH_WEEKDAY = format({ weekday: "short", day: "numeric", month: "short" });
const WITH_YEAR = format({ day: "numeric", month: "short", year: "numeric" });
const CLOCK = format({ hour: "numeric", minute: "2-digit" });
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const NUMBER = new Intl.NumberFormat();

/** The language of dates; the page is in English. */
export const LANGUAGE = WEEKDAY.resolvedOptions().locale;

/** @param {number} number */
export const counted = (number) => NUMBER.format(number);

/** @param {string} text */
export const capital = (text) => text.charAt(0).toLocaleUpperCase() + text.slice(1);

/** "Today", "Friday" or "27 Nov". @param {string} day @param {string} today */
export function dayWords(day, today) {
  const away = between(today, day);
  if (Math.abs(away) <= 1) return capital(RELATIVE.format(away, "day"));
  if (away > 1 && away < 7) return WEEKDAY.format(Date.parse(day));
  return (yearOf(day) === yearOf(today) ? SHORT : WITH_YEAR).format(Date.parse(day));
}

/** "Fri, 27 Nov", with the year if it is another. @param {string} day @param {string} today */
export const fullDay = (day, today) => (yearOf(day) === yearOf(today) ? WITH_WEEKDAY : WITH_YEAR).format(Date.parse(day));

/** Returns the heading of a day. @param {string} day @param {string} today @returns {[string, string]} */
export function headingWords(day, today) {
  const near = Math.abs(between(today, day)) <= 1 || (day > today && between(today, day) < 7);
  return near ? [dayWords(day, today), SHORT.format(Date.parse(day))] : [fullDay(day, today), ""];
}

/** @param {string} time */
export const clockWords = (time) => CLOCK.format(Date.parse(`1970-01-01T${time}Z`));

/** @param {Pick<Task, "due" | "time">} task @param {string} today */
export const dueWords = ({ due, time }, today) => [due && dayWords(due, today), time && clockWords(time)].filter(Boolean).join(" ");

/** With a time, once it has passed; without one, after the end of its day. @param {Task} task @param {Moment} now */
export const isPast = ({ due, time }, now) => due !== null && (due < now.day || (due === now.day && time !== null && time < now.time));

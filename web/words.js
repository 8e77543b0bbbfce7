// @ts-check
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
const capital = (text) => text.charAt(0).toLocaleUpperCase() + text.slice(1);

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

/* Days are texts like "2026-11-27", without a zone, and are compared as texts. */
const DAY = 86_400_000; // ms

/** @param {number} moment */
const iso = (moment) => new Date(moment).toISOString().slice(0, 10);

/** @param {string} day @param {number} count */
export const plusDays = (day, count) => iso(Date.parse(day) + count * DAY);

/** Monday is 0. @param {string} day */
const weekdayOf = (day) => (new Date(day).getUTCDay() + 6) % 7;

/** @param {string} day */
const yearOf = (day) => Number(day.slice(0, 4));

/** Returns the number of days between two days. @param {string} from @param {string} to */
export const between = (from, to) => Math.round((Date.parse(to) - Date.parse(from)) / DAY);

/** @param {string} today */
export const nextMonday = (today) => plusDays(today, 7 - weekdayOf(today));

const WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/** @param {string} day as the tools take it, with the weekday that they check */
const inGrammar = (day) => `${capital(WEEKDAYS[weekdayOf(day)].slice(0, 3))} ${day}`;

/** Returns a date as the tools accept it. @param {string | null} day @param {string | null} [time] @param {boolean} [allDay] without the time that it had */
export const dueInGrammar = (day, time, allDay) => (day ? `${inGrammar(day)}${time ? ` ${time}` : allDay ? " all day" : ""}` : "none");

/** @type {Record<string, string>} */
const UNITS = { DAILY: "day", WEEKLY: "week", MONTHLY: "month", YEARLY: "year" };
/** Of reminders, in minutes. */
const LEAD_TIMES = /** @type {const} */ ([[1440, "day", "days"], [60, "hour", "hours"], [1, "min", "min"]]);
const CODES = WEEKDAYS.map((name) => name.slice(0, 2).toUpperCase());
/** @type {Record<string, string>} */
const NTH = { 1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", "-1": "last" };
const MONTHS = [..."012345678901"].map((_, at) => new Intl.DateTimeFormat("en", { month: "long", timeZone: "UTC" }).format(Date.UTC(2026, at, 1)));

/** Returns a rule in words that the server's grammar understands, if there are any. @param {string} rule */
export function repeatWords(rule) {
  const { FREQ, INTERVAL = "1", BYDAY, BYMONTHDAY, BYMONTH, COUNT, UNTIL, FROM } = Object.fromEntries(
    rule.split(";").map((part) => part.split("=")),
  );
  const unit = UNITS[FREQ] ?? "time";
  if (FROM) return `${INTERVAL} ${unit}${INTERVAL === "1" ? "" : "s"} after completion`;
  const every = INTERVAL === "1" ? `every ${unit}` : `every ${INTERVAL} ${unit}s`;
  const end = UNTIL ? `, until ${fullDay(`${UNTIL.slice(0, 4)}-${UNTIL.slice(4, 6)}-${UNTIL.slice(6, 8)}`, "")}` : COUNT ? `, ${COUNT} left` : "";
  return onWhat(every, FREQ, INTERVAL, BYDAY, BYMONTHDAY, BYMONTH) + end;
}

/** Returns when a task reminds, "" if as its user has set. @param {number | "none" | null | undefined} remind minutes before its time */
export function reminderWords(remind = null) {
  if (remind === null) return "";
  return remind === "none" ? "no reminder" : `reminder ${leadTimeWords(remind).toLowerCase()}`;
}

/** Returns "When due" or "2 hours before". @param {number} minutes before the due time */
export function leadTimeWords(minutes) {
  if (minutes === 0) return "When due";
  const [size, unit, units] = LEAD_TIMES.find(([size]) => minutes % size === 0) ?? LEAD_TIMES[2];
  return `${minutes / size} ${minutes === size ? unit : units} before`;
}

/** @param {string} every @param {string} freq @param {string} interval @param {string} [byDay] @param {string} [byMonthDay] @param {string} [byMonth] */
function onWhat(every, freq, interval, byDay, byMonthDay, byMonth) {
  if (byDay === "MO,TU,WE,TH,FR" && interval === "1") return "every weekday";
  if (byDay) {
    const days = byDay.split(",").map((code) => [NTH[code.slice(0, -2)], capital(WEEKDAYS[CODES.indexOf(code.slice(-2))] ?? "")].filter(Boolean).join(" "));
    const listed = days.length > 1 ? `${days.slice(0, -1).join(", ")} and ${days.at(-1)}` : days[0];
    return interval === "1" ? `every ${listed}` : `${every} on ${listed}`;
  }
  if (!byMonthDay) return every;
  const days = byMonthDay.split(",").map((day) => (day === "-1" ? "last day" : ordinal(Number(day)))).join(", ");
  if (freq === "YEARLY") return `${every} on ${byMonthDay} ${MONTHS[Number(byMonth) - 1] ?? ""}`;
  return byMonthDay === "-1" && interval === "1" ? "the last day of every month" : `${every} on the ${days}`;
}

/** @param {number} number */
function ordinal(number) {
  const ending = number % 10 < 4 && Math.floor(number / 10) !== 1 ? ["th", "st", "nd", "rd"][number % 10] : "th";
  return `${number}${ending}`;
}

/**
 * Removes the characters that reorder others. A text in quotes, a title, a label or a name can be isolated by an element with
 * `dir`; in the page's title, a tooltip, a notice or a file name, it would reorder what is beside it.
 * @param {string} text
 */
export const removeBidiControls = (text) => text.replace(/\p{Bidi_Control}/gu, "");

/** Counts the characters as the server does: an emoji is one, and two in JavaScript's length. @param {string} text */
export const lengthOf = (text) => [...text].length;

/** Whether nothing of a text can be seen. @param {string} text */
export const isBlank = (text) => /^[\s\p{Default_Ignorable_Code_Point}\p{Cc}]*$/u.test(text);

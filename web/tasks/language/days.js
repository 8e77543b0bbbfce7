// @ts-check
import * as calendar from "./calendar.js";

/**
 * Days as people say them: a row for each way to say one, an expression, and a function that is given today and what
 * the expression's groups found. To add a way of saying a day, add a row, and a sentence to the table of the tests.
 */
export const WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
export const WEEKDAY = WEEKDAYS.join("|");
export const MONTH =
  "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?" +
  "|nov(?:ember)?|dec(?:ember)?";
const SHORT_WEEKDAY = "mon|tues?|wed|thu(?:rs?)?|fri|sat|sun";
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
export const COUNT = `[1-9]\\d{0,2}|${NUMBERS.join("|")}|a|an|a couple of`;
export const UNIT = "(day|week|month|year)s?";
const TH = "(?:st|nd|rd|th)";
const YEAR = "(?:,? (20\\d\\d))?";
const ON = "(?:due )?(?:on |by |until |till |for )?(?:the )?";
const SURELY_ON = "(?:due )?(?:on|by|until|till|for|due) the ";
const BEFORE = "before ";
const END = "(?:at |by )?(?:the )?end of ";
const LAST_YEAR = "2999";

/** @param {string} word */
export function countOf(word) {
  if (word === "a couple of") return 2;
  return NUMBERS.includes(word) ? NUMBERS.indexOf(word) + 1 : Number(word) || 1;
}

/** Monday is 0. @param {string} word */
export const weekdayNamed = (word) => WEEKDAYS.findIndex((name) => name.startsWith(word.slice(0, 3)));

/** After today. @param {string} today @param {number} weekday */
export const nextWeekday = (today, weekday) =>
  calendar.plusDays(today, ((weekday - calendar.weekdayOf(today) + 6) % 7) + 1);

/** The next day of that number, today being one. @param {string} today @param {string} number */
export const dayOfMonth = (today, number) => firstReal(today, upTo(9).map((more) => calendar.month(today, more)), number);

/** The next such day, or that of the year. @param {string} today @param {string} number @param {string} name @param {string} [year] */
export function dayOfYear(today, number, name, year) {
  const months = (/** @type {number} */ of) => `${of}-${String(MONTHS.indexOf(name.slice(0, 3)) + 1).padStart(2, "0")}-01`;
  if (year) return firstReal("", [months(Number(year))], number);
  return firstReal(today, upTo(9).map((more) => months(calendar.yearOf(today) + more)), number);
}

/** @param {number} count */
const upTo = (count) => [...Array(count).keys()];

/** @param {string} today @param {string[]} months @param {string} number */
const firstReal = (today, months, number) =>
  months.map((first) => calendar.dayIn(first, Number(number))).find((day) => day && day >= today) ?? null;

/** @param {string} today */
const weekend = (today, later = 0) => calendar.plusDays(calendar.week(today, later), 5);

/** @param {string} today @param {string} count @param {string} unit */
const shifted = (today, count, unit) => calendar.plus(today, countOf(count), unit);

/** @typedef {(today: string, ...found: string[]) => string | null} Day */
/** @type {[string, Day][]} */
const SAID = [
  [`${ON}today|tonight`, (today) => today],
  [`${ON}tomorrow`, (today) => calendar.plusDays(today, 1)],
  [`${ON}(?:this |next |coming )?(${WEEKDAY})`, (today, word) => nextWeekday(today, weekdayNamed(word))],
  [`(?:due )?(?:on|by|until|till|for|due|this|next) (${SHORT_WEEKDAY})`, (today, word) => nextWeekday(today, weekdayNamed(word))],
  [`${ON}(20\\d\\d-\\d\\d-\\d\\d)`, (today, day) => (calendar.isDay(day) ? day : null)],
  [`(?:with)?in (${COUNT}) ${UNIT}(?: time)?`, shifted],
  [`(${COUNT}) ${UNIT} from (?:now|today)`, shifted],
  [`${ON}day after tomorrow`, (today) => calendar.plusDays(today, 2)],
  [`${ON}(\\d\\d?)${TH}?(?: of)? (${MONTH})\\.?${YEAR}`, dayOfYear],
  [`${ON}(${MONTH})\\.? (?:the )?(\\d\\d?)${TH}?${YEAR}`, (today, of, day, year) => dayOfYear(today, day, of, year)],
  [`${SURELY_ON}(\\d\\d?)${TH}(?: of (?:this|the) month)?`, dayOfMonth],
  [`${ON}(\\d\\d?)${TH} of next month`, (today, day) => dayOfMonth(calendar.month(today, 1), day)],
  [`${ON}next week`, (today) => calendar.week(today, 1)],
  [`${ON}(?:this|at the|on the) weekend`, (today) => (weekend(today) > today ? weekend(today) : today)],
  [`${ON}next weekend`, (today) => weekend(today, 1)],
  [`${END}(?:the|this) week`, (today) => calendar.plusDays(calendar.week(today, 1), -1)],
  [`${END}next week`, (today) => calendar.plusDays(calendar.week(today, 2), -1)],
  [`${ON}next month`, (today) => calendar.month(today, 1)],
  [`${ON}next year`, (today) => `${calendar.yearOf(today) + 1}-01-01`],
  [`${END}(?:the |this )?month`, (today) => calendar.lastOfMonth(today)],
  [`${END}next month`, (today) => calendar.lastOfMonth(today, 1)],
  [`${END}(${MONTH})`, (today, of) => calendar.lastOfMonth(dayOfYear(calendar.month(today), "1", of) ?? today)],
  [`${END}(?:the |this )?year`, (today) => `${calendar.yearOf(today)}-12-31`],
  ["(?:at |by )?(?:the )?(?:start|beginning) of next week", (today) => calendar.week(today, 1)],
  ["(?:at |by )?(?:the )?(?:start|beginning) of next month", (today) => calendar.month(today, 1)],
];

/** What any of the rows is said with, as one expression. @param {[string, unknown][]} rows */
export const withoutGroups = (rows) => rows.map(([source]) => source.replace(/\((?!\?)/g, "(?:")).join("|");

/** @template Found @param {[string, Found][]} rows @returns {[RegExp, Found][]} */
export const compiled = (rows) => rows.map(([source, found]) => [new RegExp(`^(?:${source})$`), found]);

export const DAY = `(?:${BEFORE})?(?:${withoutGroups(SAID)})`;
const ROWS = compiled(SAID);

/** The day that is meant, null for what is none. @param {string} said @param {string} today @returns {string | null} */
export function dayOf(said, today) {
  if (said.startsWith(BEFORE)) {
    const then = said.slice(BEFORE.length);
    const last = dayOf(then, today) ?? dayOf(`on ${then}`, today);
    return last && calendar.plusDays(last, -1);
  }
  for (const [pattern, day] of ROWS) {
    const found = pattern.exec(said);
    if (found) return within(day(today, ...found.slice(1)));
  }
  return null;
}

/** The tools take no later day. @param {string | null} day */
const within = (day) => (day && day.length === 10 && day.slice(0, 4) <= LAST_YEAR ? day : null);

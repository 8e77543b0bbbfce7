// @ts-check
import * as calendar from "./calendar.js";
import { PARTS_OF_DAY } from "./clock.js";
import { COUNT, compiled, countOf, dayOfMonth, dayOfYear, MONTH, nextWeekday, UNIT, WEEKDAY, weekdayNamed, WEEKDAYS, withoutGroups } from "./days.js";

/** How something repeats, as people say it: rows of what is said, its rule, and the first day. */

/** @type {Record<string, string>} */
const FREQUENCIES = { day: "DAILY", week: "WEEKLY", month: "MONTHLY", year: "YEARLY" };
/** @type {Record<string, string>} */
const ADVERBS = { daily: "day", weekly: "week", monthly: "month", yearly: "year", annually: "year" };
const EACH = "(?:every|each)";
/** @type {Record<string, number>} */
const ORDINALS = { first: 1, "1st": 1, second: 2, "2nd": 2, third: 3, "3rd": 3, fourth: 4, "4th": 4, last: -1 };
const ORDINAL = Object.keys(ORDINALS).join("|");
const TH = "(?:st|nd|rd|th)";
const AND_WEEKDAYS = `(?:(?:, and|,| and|&| &) (?:${WEEKDAY})s?)*`;
const DID =
  "(?:(?:i|we) (?:last |have |'ve )*(?:do|did|done|finish|finished|complete|completed)(?: it| that| this)?(?: last)?" +
  "|(?:it is|it's) (?:done|finished)|(?:the )?last time|completion|(?:doing|finishing|completing) it)";

/** A rule and the first day, "" for the next that the time allows; a time where the words tell one. @typedef {{repeat: string, day: string, time?: string}} Repeat */

/** @param {string} frequency @param {string} day @param {number} interval @param {string[]} more @returns {Repeat} */
function rule(frequency, day, interval = 1, ...more) {
  const every = interval > 1 ? [`INTERVAL=${interval}`] : [];
  return { day, repeat: [`FREQ=${frequency}`, ...every, ...more].join(";") };
}

/** @param {string | undefined} count */
const interval = (count) => (count === "other" || count === "second" ? 2 : count ? countOf(count) : 1);

/** @param {string} today @param {string} words @param {string} [count] */
function onWeekdays(today, words, count) {
  const found = [...new Set(words.match(new RegExp(WEEKDAY, "g"))?.map(weekdayNamed))].sort();
  const first = found.map((weekday) => nextWeekday(today, weekday)).sort()[0];
  const names = found.map((weekday) => WEEKDAYS[weekday].slice(0, 2).toUpperCase());
  return rule("WEEKLY", first, interval(count), `BYDAY=${names}`);
}

/** @param {string} today */
function onWorkingDays(today) {
  const first = calendar.weekdayOf(today) > 4 ? nextWeekday(today, 0) : "";
  return rule("WEEKLY", first, 1, "BYDAY=MO,TU,WE,TH,FR");
}

/** @param {string} today @param {string} number */
function onDayOfMonth(today, number) {
  const first = dayOfMonth(today, number);
  return first ? rule("MONTHLY", first) : null;
}

/** @param {string} today @param {string} number @param {string} month */
function onDayOfYear(today, number, month) {
  const first = dayOfYear(today, number, month);
  return first ? rule("YEARLY", first) : null;
}

/** @param {string} today @param {string} ordinal @param {string} word */
function onWeekdayOfMonth(today, ordinal, word) {
  const number = ORDINALS[ordinal];
  const weekday = weekdayNamed(word);
  const first = [0, 1, 2].map((later) => nth(calendar.month(today, later), number, weekday)).find((day) => day >= today);
  return first ? rule("MONTHLY", first, 1, `BYDAY=${number}${WEEKDAYS[weekday].slice(0, 2).toUpperCase()}`) : null;
}

/** @param {string} first of a month @param {number} number @param {number} weekday */
function nth(first, number, weekday) {
  if (number > 0) return calendar.plusDays(nextWeekday(calendar.plusDays(first, -1), weekday), 7 * (number - 1));
  return calendar.plusDays(nextWeekday(calendar.lastOfMonth(first), weekday), -7);
}

/** @typedef {(today: string, ...found: string[]) => Repeat | null} Rule */
/** @type {[string, Rule][]} */
const SAID = [
  [`${EACH} (?:(other|second|${COUNT}) )?${UNIT}`, (today, count, unit) => rule(FREQUENCIES[unit], "", interval(count))],
  [`(${Object.keys(ADVERBS).join("|")})`, (today, word) => rule(FREQUENCIES[ADVERBS[word]], "")],
  [`${EACH} single day`, () => rule("DAILY", "")],
  [`${EACH} (${Object.keys(PARTS_OF_DAY).join("|")})`, (today, part) => ({ ...rule("DAILY", ""), time: PARTS_OF_DAY[part] })],
  [`${EACH} ((?:${WEEKDAY})s?${AND_WEEKDAYS})`, (today, words) => onWeekdays(today, words)],
  [`(?:weekly )?on ((?:${WEEKDAY})s${AND_WEEKDAYS})`, (today, words) => onWeekdays(today, words)],
  [`${EACH} (other|second) (${WEEKDAY})`, (today, count, word) => onWeekdays(today, word, count)],
  [`${EACH} (${COUNT}) weeks on (${WEEKDAY})s?`, (today, count, word) => onWeekdays(today, word, count)],
  [`weekly on (${WEEKDAY})`, (today, word) => onWeekdays(today, word)],
  [`${EACH} (?:weekday|working day|workday)s?|on (?:weekdays|workdays)`, onWorkingDays],
  [`${EACH} weekend|on weekends`, (today) => onWeekdays(today, "saturday sunday")],
  [`(?:${EACH} month|monthly) on the (\\d\\d?)${TH}`, onDayOfMonth],
  [`(?:on )?the (\\d\\d?)${TH} (?:of (?:the|every|each) month|${EACH} month)`, onDayOfMonth],
  [`${EACH} (\\d\\d?)${TH}(?: of the month)?`, onDayOfMonth],
  [`${EACH} year on (?:the )?(\\d\\d?)${TH}?(?: of)? (${MONTH})`, onDayOfYear],
  [`${EACH} (\\d\\d?)${TH}?(?: of)? (${MONTH})`, onDayOfYear],
  [`${EACH} (${MONTH}) (\\d\\d?)${TH}?`, (today, month, number) => onDayOfYear(today, number, month)],
  [`${EACH} (${ORDINAL}) (${WEEKDAY})(?: of the month)?`, onWeekdayOfMonth],
  [`(?:on )?the (${ORDINAL}) (${WEEKDAY}) of (?:the|every|each) month`, onWeekdayOfMonth],
  ["(?:at |on )?(?:the )?(?:end|last day) of (?:every|each) month", (today) => rule("MONTHLY", calendar.lastOfMonth(today), 1, "BYMONTHDAY=-1")],
  [`(?:${EACH} )?(${COUNT}) ${UNIT} after ${DID}`, (today, count, unit) => rule(FREQUENCIES[unit], "", countOf(count), "FROM=DONE")],
];
export const EVERY = withoutGroups(SAID);
const ROWS = compiled(SAID);

/** @param {string} said @param {string} today @returns {Repeat | null} */
export function repeatOf(said, today) {
  for (const [pattern, rule] of ROWS) {
    const found = pattern.exec(said);
    if (found) return rule(today, ...found.slice(1));
  }
  return null;
}

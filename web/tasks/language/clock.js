// @ts-check
/** Clock times as people say them. An hour without "am" or "pm" is one of the day: 7 to 12, then 1 to 6 after noon. */

/** @type {Record<string, string>} */
export const PARTS_OF_DAY = { morning: "09:00", afternoon: "15:00", evening: "19:00", night: "20:00" };

/** Said of a time, its hours are those after noon. */
export const LATE = /(?:tonight|evening|night|afternoon)$/;
const HOURS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
const HOUR = `(?:\\d\\d?|${HOURS.join("|")})`;
const AT = "(?:(?:at|by|@|from|around|before) ?)";

/** Of a regular expression, without groups. */
export const CLOCK = [
  `(?:${AT}?\\d\\d?(?:[:.]\\d\\d)? ?(?:am|pm|a\\.m\\.?|p\\.m\\.?)|(?:at |by |@ ?)${HOUR}(?: o'clock)?`,
  `|${AT}?\\d\\d?:\\d\\d|(?:at |by |before )?(?:noon|midday)`,
  `|${AT}?(?:half past|quarter past|quarter to) ${HOUR}|${AT}?${HOUR}(?= in the))`,
  "(?: in the (?:morning|afternoon|evening)| at night)?",
].join("");
const TIME = new RegExp(`(half past |quarter past |quarter to )?\\b(${HOUR})(?:[:.](\\d\\d))? ?([ap]\\b|am|pm)?`);
/** @type {Record<string, number>} */
const MINUTES = { "half past ": 30, "quarter past ": 15, "quarter to ": -15 };

/** @param {number} number */
const two = (number) => String(number).padStart(2, "0");

/** Of "at 5 pm" and "5 in the afternoon": "17:00"; null if no clock shows it. @param {string} said @param {boolean} late it is after noon */
export function timeOf(said, late = false) {
  if (said in PARTS_OF_DAY) return PARTS_OF_DAY[said];
  if (/(?:\bnoon|midday)$/.test(said)) return "12:00";
  const found = TIME.exec(said);
  if (!found) return null;
  const [, before = "", word, after, half] = found;
  let hour = HOURS.includes(word) ? HOURS.indexOf(word) + 1 : Number(word);
  if (half && !(hour >= 1 && hour <= 12)) return null;
  if (half || said.endsWith("morning")) hour = (hour % 12) + (half?.[0] === "p" ? 12 : 0);
  else if (hour < 12 && (late || LATE.test(said) || (!after && hour >= 1 && hour <= 6))) hour += 12;
  const minutes = 60 * hour + Number(after ?? 0) + (MINUTES[before] ?? 0);
  return hour < 24 && Number(after ?? 0) < 60 ? `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}` : null;
}

/** The next minute that is so much later. @param {Moment} now @param {number} minutes @returns {Moment} */
export function later(now, minutes) {
  const then = new Date(Date.parse(`${now.day}T${now.time}Z`) + minutes * 60_000).toISOString();
  return { day: then.slice(0, 10), time: then.slice(11, 16) };
}

/** A day and a clock time where the person is. @typedef {{day: string, time: string}} Moment */

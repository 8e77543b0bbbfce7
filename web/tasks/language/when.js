// @ts-check
import { plusDays } from "./calendar.js";
import { CLOCK, LATE, later, PARTS_OF_DAY, timeOf } from "./clock.js";
import { COUNT, countOf, DAY, dayOf } from "./days.js";
import { EVERY, repeatOf } from "./repeats.js";
/** @import {Moment} from "./clock.js" */

/** A date as it is said, with what it repeats by. @typedef {{day: string, time: string | null, repeat: string | null}} When */

const PARTS = Object.keys(PARTS_OF_DAY).join("|");
const DAY_FIRST = new RegExp(`^(${EVERY}|${DAY})?(?:^|,? |$)(${CLOCK}|${PARTS})?$`);
const CLOCK_FIRST = new RegExp(`^(${CLOCK}),? (${EVERY}|${DAY})$`);
const THIS = /\bthis (?=morning|afternoon|evening)/g;
const SOON = new RegExp(`^in (?:(half an|${COUNT}|[1-9]\\d\\d?) (hour|minute)s?|half an hour)$`);
const BARE_HOUR = /^(?:at |by |@ ?)(?:\d\d?|[a-z]+)(?: o'clock)?$/;
const AROUND = /^[ ,:;()?!]+|[ ,:;()?!]+$/g;

/** What the whole text means, null if it is no date. @param {string} text @param {Moment} now @returns {When | null} */
export function whenOf(text, now) {
  const said = text.toLowerCase().replace(AROUND, "").replace(/\s+/g, " ").replace(THIS, "today ");
  return said ? (read(said, now) ?? starting(said, now) ?? soon(said, now)) : null;
}

/** @param {string} said @param {Moment} now */
function read(said, now) {
  const [, day = "", clock = ""] = DAY_FIRST.exec(said) ?? [];
  if (day || (clock && !(clock in PARTS_OF_DAY))) return whenAt(day, clock, now);
  const [, first, then] = CLOCK_FIRST.exec(said) ?? [];
  return then ? whenAt(then, first, now) : null;
}

/** @param {string} day @param {string} clock @param {Moment} now @returns {When | null} */
function whenAt(day, clock, now) {
  const said = clock ? timeOf(clock, LATE.test(day) || (!day && isLate(clock, now))) : null;
  if (clock && said === null) return null;
  const rule = day ? repeatOf(day, now.day) : null;
  const time = said ?? rule?.time ?? null;
  const found = rule ? rule.day : day ? dayOf(day, now.day) : "";
  return found === null ? null : { day: found || next(time, now), time, repeat: rule?.repeat ?? null };
}

/** Today, or tomorrow when the time has passed. @param {string | null} time @param {Moment} now */
const next = (time, now) => (time && time < now.time ? plusDays(now.day, 1) : now.day);

/** Whether "at 7" is of the evening, as it is said in the afternoon. @param {string} clock @param {Moment} now */
function isLate(clock, now) {
  if (now.time < "12:00" || !BARE_HOUR.test(clock)) return false;
  return (timeOf(clock) ?? "") <= now.time && now.time < (timeOf(clock, true) ?? "");
}

/** Of "every 2 days starting tomorrow" the rule, and that day as the first. @param {string} said @param {Moment} now @returns {When | null} */
function starting(said, now) {
  const at = said.indexOf(" starting ");
  const rule = at > 0 ? read(said.slice(0, at), now) : null;
  const first = rule?.repeat ? read(said.slice(at + 10), now) : null;
  return rule && first && !first.repeat ? { ...first, time: first.time ?? rule.time, repeat: rule.repeat } : null;
}

/** Of "in 2 hours" the day and the time. @param {string} said @param {Moment} now @returns {When | null} */
function soon(said, now) {
  const found = SOON.exec(said);
  if (!found) return null;
  const [, count = "half an", unit] = found;
  return { ...later(now, count === "half an" ? 30 : countOf(count) * (unit === "hour" ? 60 : 1)), repeat: null };
}

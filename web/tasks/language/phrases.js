// @ts-check
import { capital, fullDay } from "../../words.js";
import { weekdayOf } from "./calendar.js";

const WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/** @param {string} day as the tools take it, with the weekday that they check */
const inGrammar = (day) => `${capital(WEEKDAYS[weekdayOf(day)].slice(0, 3))} ${day}`;

/** Returns a date as the tools accept it. @param {string | null} day @param {string | null} [time] @param {boolean} [allDay] without the time that it had */
export const dueInGrammar = (day, time, allDay) => (day ? `${inGrammar(day)}${time ? ` ${time}` : allDay ? " all day" : ""}` : "none");

/** @type {Record<string, string>} */
const UNITS = { DAILY: "day", WEEKLY: "week", MONTHLY: "month", YEARLY: "year" };
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

// @ts-check
import { TEXTS } from "../texts.js";

/**
 * Groups things by day, the newest first: today, yesterday, the rest of the week, then months.
 * @template T
 * @param {readonly T[]} things
 * @param {(thing: T) => Date} momentOf
 * @param {Date} [now]
 * @returns {{title: string, things: T[]}[]}
 */
export function byDay(things, momentOf, now = new Date()) {
  /** @type {{title: string, things: T[]}[]} */
  const groups = [];
  for (const thing of things) {
    const title = titleOf(momentOf(thing), now);
    const last = groups.at(-1);
    if (last?.title === title) last.things.push(thing);
    else groups.push({ title, things: [thing] });
  }
  return groups;
}

/** @param {Date} moment @param {Date} now */
function titleOf(moment, now) {
  const { today, yesterday, thisWeek } = TEXTS.days;
  const start = (/** @type {number} */ back) => new Date(now.getFullYear(), now.getMonth(), now.getDate() - back);
  if (moment >= start(0)) return today;
  if (moment >= start(1)) return yesterday;
  if (moment >= start(sinceWeekBegan(now))) return thisWeek;
  const sameYear = moment.getFullYear() === now.getFullYear();
  return new Intl.DateTimeFormat(undefined, { month: "long", ...(!sameYear && { year: "numeric" }) }).format(moment);
}

/** Returns how many days ago the user's week began. @param {Date} now */
function sinceWeekBegan(now) {
  const locale = /** @type {any} */ (new Intl.Locale(navigator.language)); // not every browser knows of weeks
  const { firstDay = 1 } = locale.getWeekInfo?.() ?? locale.weekInfo ?? {};
  return (now.getDay() - firstDay + 7) % 7;
}

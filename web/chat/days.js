// @ts-check
import { TEXTS } from "../texts.js";
/** @import {Thread} from "./types" */

/** Groups conversations by when they began: today, yesterday, the rest of the week, then months. @param {readonly Thread[]} threads the newest first */
export function byDay(threads) {
  /** @type {{title: string, threads: Thread[]}[]} */
  const groups = [];
  for (const thread of threads) {
    const title = titleOf(new Date(thread.created_at), new Date());
    const last = groups.at(-1);
    if (last?.title === title) last.threads.push(thread);
    else groups.push({ title, threads: [thread] });
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

/** Returns the time of day, with the date if it is not today. @param {Date} moment */
export function timeWords(moment) {
  const isToday = moment.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(undefined, { ...(!isToday && { day: "numeric", month: "short" }), hour: "numeric", minute: "2-digit" }).format(moment);
}

/** Returns when conversations with the same title began, by their ids; others need no time to be told apart. @param {readonly Thread[]} threads @returns {Map<string, string>} */
export function timesOfTwins(threads) {
  const titles = threads.map(({ title }) => title || "");
  const twins = threads.filter((_, at) => titles.indexOf(titles[at]) !== titles.lastIndexOf(titles[at]));
  return new Map(twins.map(({ id, created_at }) => [id, timeWords(new Date(created_at))]));
}

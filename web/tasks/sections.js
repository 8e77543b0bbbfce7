// @ts-check
import { headingWords, isPast } from "../words.js";
import { LIST } from "../texts.js";
import { plusDays } from "./language/calendar.js";
/** @import {Clock} from "./data/clock.js" */
/** @import {Section, Task, View} from "./types" */

/**
 * Groups the tasks of a view under headings.
 * @param {View} view
 * @param {Task[]} tasks
 * @param {Clock} clock
 * @param {boolean} whole whether days without tasks are shown, too
 * @returns {Section[]}
 */
export function sectionsOf(view, tasks, clock, whole) {
  const { now } = clock;
  const today = now.day;
  if (view === "done") return byDay(tasks, (task) => clock.dayOf(task.completed ?? `${today}T12:00Z`), today, false);
  if (view === "deleted") return byDay(tasks, (task) => clock.dayOf(task.deleted ?? `${today}T12:00Z`), today, false);
  if (view === "upcoming") return upcoming(tasks, today, whole);
  const parts = [
    part("overdue", [LIST.overdue], tasks.filter((task) => isPast(task, now)), null, "danger"),
    part("today", headingWords(today, today), tasks.filter((task) => task.due === today && !isPast(task, now)), today),
    part("coming", [LIST.views.upcoming], tasks.filter((task) => task.due !== null && task.due > today), null),
    part("undated", [LIST.noDate], tasks.filter((task) => task.due === null), null),
  ];
  return parts.filter(({ tasks }) => tasks.length > 0);
}

/** @param {Task[]} tasks @param {string} today @param {boolean} whole */
function upcoming(tasks, today, whole) {
  const days = byDay(tasks, ({ due }) => due ?? today, today, true);
  if (!whole) return days;
  const known = new Set(days.map(({ day }) => day));
  const empty = comingDays(today).filter((day) => !known.has(day)).map((day) => dayPart(day, [], today, true));
  return [...days, ...empty].sort((one, other) => one.key.localeCompare(other.key));
}

/** @param {Task[]} tasks @param {(task: Task) => string} dayOf @param {string} today @param {boolean} open whether tasks can be moved to such a day */
function byDay(tasks, dayOf, today, open) {
  /** @type {Map<string, Task[]>} */
  const days = new Map();
  for (const task of tasks) {
    const day = dayOf(task);
    const others = days.get(day);
    if (others) others.push(task);
    else days.set(day, [task]);
  }
  return [...days].map(([day, tasks]) => dayPart(day, tasks, today, open));
}

/** @param {string} day @param {Task[]} tasks @param {string} today @param {boolean} open */
const dayPart = (day, tasks, today, open) => part(day, headingWords(day, today), tasks, open ? day : null);

/** @param {string} key @param {string[]} title @param {Task[]} tasks @param {string | null} day @param {"danger"} [tone] @returns {Section} */
const part = (key, [title, date = ""], tasks, day, tone) => ({ key, title, date, tasks, day, ...(tone && { tone }) });

/** Whether a changed task still belongs to the view. @param {View} view @param {Task} task @param {string} today */
export function belongs(view, task, today) {
  if (task.status === "deleted") return view === "deleted";
  if (view === "today") return task.due !== null && task.due <= today;
  if (view === "upcoming") return task.due !== null && task.due > today;
  return view !== "deleted";
}

/** The first days after today, which the upcoming view always shows. @param {string} today */
const comingDays = (today) => [1, 2, 3, 4, 5, 6, 7].map((count) => plusDays(today, count));

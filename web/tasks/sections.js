// @ts-check
import { headingWords, isPast, plusDays } from "../words.js";
import { LIST } from "../texts.js";
/** @import {Clock} from "./data/reader.js" */
/** @import {Pages} from "./data/pages.js" */
/** @import {PendingChanges} from "./data/pending.js" */
/** @import {Editing} from "./editing.js" */
/** @import {Filter, Moment, Section, Sort, Task, View} from "./types" */

/** @type {Record<string, string>} */
const TITLES = { overdue: LIST.overdue, coming: LIST.views.upcoming, undated: LIST.noDate, later: LIST.later, earlier: LIST.earlier, all: "" };
const PENDING_ORDER = ["overdue", "today", "coming", "undated"];
const BEYOND = ["later", "earlier"]; // days that the server does not count one by one

/** The rows of each section; a task that is not loaded is null. @typedef {Map<string, (Task | null)[]>} Parts */

/**
 * Arranges the rows of a view under the headings that the server has counted. Changes that are not saved yet are shown
 * where the server would list them; the edited task stays where it is.
 * @param {Pages} pages @param {PendingChanges} pending @param {Clock} clock @param {Editing | null} editing
 * @returns {Section[]}
 */
export function arrange(pages, pending, clock, editing) {
  const { view, order: sort } = pages;
  const today = clock.now.day;
  const order = createOrder(view, sort, clock);
  const known = new Set(pages.tasks.map(({ id }) => id));
  const parts = partsOf(pages);
  const moved = pending.added.filter((task) => !known.has(task.id) && matches(pages, task));
  for (const [key, rows] of parts) {
    const keep = (/** @type {Task | null} */ task) => {
      if (!task) return [task];
      const shown = pending.apply(task);
      if (!belongs(view, shown, today)) return [];
      if (staysAt(key, task, shown, order)) return [shown];
      moved.push(shown);
      return [];
    };
    parts.set(key, rows.flatMap(keep));
  }
  const added = moved.map((task) => pending.apply(task)).filter((task) => belongs(view, task, today));
  for (const key of new Set(added.map(order.sectionOf))) {
    parts.set(key, merge(parts.get(key) ?? [], added.filter((task) => order.sectionOf(task) === key), order));
  }
  if (editing?.view === view) hold(editing, parts, order);
  if (view === "upcoming" && sort === "date" && pages.current && !pages.filtered) for (const day of comingDays(today)) if (!parts.has(day)) parts.set(day, []);
  return sorted([...parts.keys()], view).map((key) => section(key, parts.get(key) ?? [], view, today)).filter(({ tasks }) => tasks.length > 0 || view === "upcoming");
}

/** @param {Pages} pages @returns {Parts} */
function partsOf({ sections, rows }) {
  let at = 0;
  return new Map(sections.map(({ key, count }) => [key, rows.slice(at, (at += count))]));
}

/** @param {string} key @param {Task} task @param {Task} shown with its changes @param {Order} order */
function staysAt(key, task, shown, { sectionOf, compare }) {
  if (shown === task || BEYOND.includes(key) || (shown.completed === null && task.completed !== null)) return true;
  return sectionOf(shown) === key && compare(shown, task) === 0;
}

/** Adds tasks to the rows of a section, each before the first one that it precedes. @param {(Task | null)[]} rows @param {Task[]} added @param {Order} order */
function merge(rows, added, { compare }) {
  const waiting = added.toSorted(compare);
  /** @type {(Task | null)[]} */
  const merged = [];
  for (const row of rows) {
    while (row && waiting.length > 0 && compare(waiting[0], row) < 0) merged.push(...waiting.splice(0, 1));
    merged.push(row);
  }
  return [...merged, ...waiting];
}

/** Shows the edited task below the one that it was below. @param {Editing} editing @param {Parts} parts @param {Order} order */
function hold(editing, parts, { sectionOf }) {
  const { id } = editing.task;
  const held = editing.hold([...parts.values()].flat().filter((task) => task !== null));
  const above = held[held.findIndex((task) => task.id === id) - 1]?.id;
  for (const [key, rows] of parts) parts.set(key, rows.filter((task) => task?.id !== id));
  const key = sectionOf(editing.task);
  const rows = parts.get(key) ?? [];
  parts.set(key, rows.toSpliced(rows.findIndex((task) => task?.id === above) + 1, 0, editing.task));
}

/** @param {string[]} keys @param {View} view */
function sorted(keys, view) {
  if (view === "upcoming") return keys.sort();
  return view === "done" || view === "deleted" ? keys : keys.sort((one, other) => PENDING_ORDER.indexOf(one) - PENDING_ORDER.indexOf(other));
}

/** @param {string} key @param {(Task | null)[]} tasks @param {View} view @param {string} today @returns {Section} */
function section(key, tasks, view, today) {
  const day = key === "today" ? today : view === "upcoming" && !(key in TITLES) ? key : null;
  const [title, date = ""] = key in TITLES ? [TITLES[key]] : headingWords(key === "today" ? today : key, today);
  return { key, title, date, tasks, day, ...(key === "overdue" && { tone: /** @type {const} */ ("danger") }) };
}

/** Whether a changed task still belongs to the view. @param {View} view @param {Task} task @param {string} today */
export function belongs(view, task, today) {
  if (task.status === "deleted") return view === "deleted";
  if (view === "today") return task.due !== null && task.due <= today;
  if (view === "upcoming") return task.due !== null && task.due > today;
  return view !== "deleted";
}

/** Whether a word of a search is a label, as "#home" is. @param {string} word */
const isLabel = (word) => /^#\p{L}/u.test(word);

/** Whether a new task belongs to what is shown. @param {{view: View, filter: Filter}} shown @param {Task} task */
export function matches({ view, filter: { query, label, priority } }, { title, labels, priority: has, status }) {
  if (view === "done" && status !== "completed") return false;
  const finds = (/** @type {string} */ word) => (isLabel(word) ? labels.includes(word.slice(1)) : title.toLowerCase().includes(word));
  if (!query.toLowerCase().split(/\s+/).every(finds) || (label && !labels.includes(label))) return false;
  return !priority || priority === (has ?? "none");
}

/** The first days after today, which the upcoming view always shows. @param {string} today */
const comingDays = (today) => [1, 2, 3, 4, 5, 6, 7].map((count) => plusDays(today, count));

/** @type {Record<string, number>} */
const URGENCIES = { high: 1, medium: 2, low: 3 };
const LAST = "~"; // after all days and times

/**
 * The order of a view, as the server has it.
 * @typedef {object} Order
 * @property {(task: Task) => string} sectionOf returns the key of the section to which a task belongs
 * @property {(one: Task, other: Task) => number} compare
 */

/** @param {View} view @param {Sort} sort @param {Clock} clock @returns {Order} */
function createOrder(view, sort, clock) {
  const { now } = clock;
  const keys = (/** @type {Task} */ task) => KEYS[sort](task, now);
  return {
    sectionOf: (task) => (sort === "date" ? sectionOf(task, view, clock, now) : "all"),
    compare: (one, other) => compareKeys(keys(one), keys(other)),
  };
}

/** @param {Task} task @param {View} view @param {Clock} clock @param {Moment} now */
function sectionOf(task, view, clock, now) {
  if (view === "done") return clock.dayOf(task.completed ?? `${now.day}T12:00Z`);
  if (view === "deleted") return clock.dayOf(task.deleted ?? `${now.day}T12:00Z`);
  if (view === "upcoming") return task.due ?? now.day;
  if (task.due === null) return "undated";
  if (isPast(task, now)) return "overdue";
  return task.due === now.day ? "today" : "coming";
}

/** The sort keys of each order; a new task has a negative id. @type {Record<Sort, (task: Task, now: Moment) => (string | number)[]>} */
const KEYS = {
  date: (task, now) => [task.due ?? LAST, task.due === now.day && isPast(task, now) ? 0 : 1, urgencyOf(task), task.time ?? LAST, ageOf(task)],
  priority: (task) => [urgencyOf(task), task.due ?? LAST, task.time ?? LAST, ageOf(task)],
  title: (task) => [task.title.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase(), ageOf(task)],
  added: (task) => [-ageOf(task)],
};

/** @param {Task} task */
const urgencyOf = ({ priority }) => URGENCIES[priority ?? ""] ?? 4;

/** @param {Task} task */
const ageOf = ({ id }) => (id > 0 ? id : Number.MAX_SAFE_INTEGER / 2 - id);

/** @param {(string | number)[]} one @param {(string | number)[]} other */
function compareKeys(one, other) {
  const at = one.findIndex((key, index) => key !== other[index]);
  if (at < 0) return 0;
  return one[at] < other[at] ? -1 : 1;
}

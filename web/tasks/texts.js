// @ts-check
import { tasksCounted } from "./words.js";
/** @import {View} from "./types" */

/** What the list says in English; a person's own texts and dates are not here. */
export const TEXTS = {
  views: /** @type {Record<View, string>} */ ({ today: "Today", upcoming: "Upcoming", all: "All", done: "Done", deleted: "Deleted" }),
  viewsName: "Views",
  add: "Add a task",
  addHint: "Add a task: “call mum friday 3pm #home”",
  addButton: "Add",
  notThis: "Leave it in the title",
  /** @param {string} day */
  nextOne: (day) => `next ${day}`,
  tooLong: "A title has at most 200 characters.",
  noTitle: "It needs a title, too.",
  search: "Search tasks",
  filter: "Filter",
  label: "Label",
  anyLabel: "Any label",
  priority: "Priority",
  anyPriority: "Any priority",
  priorities: { high: "High", medium: "Medium", low: "Low", none: "None" },
  clearFilter: "Clear",
  select: "Select tasks",
  endSelection: "End selection",
  /** @param {number} count */
  selected: (count) => `${tasksCounted(count).replace(/ .*/, "")} selected`,
  complete: "Complete",
  move: "Move to…",
  moveOne: "Change the date",
  remove: "Delete",
  restore: "Restore",
  undo: "Undo",
  dismiss: "Dismiss",
  /** @param {string} title */
  tick: (title) => `Done: ${title}`,
  /** @param {string} title */
  selectOne: (title) => `Select ${title}`,
  /** @param {string} day */
  addOn: (day) => `Add a task for ${day}`,
  nothingOn: "Nothing planned",
  editing: { title: "Title", description: "Description", date: "Date", time: "Time", repeat: "Repeat", labels: "Labels", save: "Save", cancel: "Cancel" },
  descriptionHint: "Description",
  repeatHint: "every Monday, every 2 weeks…",
  labelsHint: "home, work",
  repeatUnknown: "This repeat is not understood: try “every Monday” or “every 2 weeks”.",
  titleNeeded: "A task needs a title.",
  timeNeedsDate: "A time needs a date, too.",
  repeatNeedsDate: "A repeat needs a date, too.",
  moveIt: "Move",
  showIt: "Show",
  /** @param {string} title */
  movingOne: (title) => `When is “${title}” due?`,
  /** @param {number} count */
  movingMany: (count) => `Move ${tasksCounted(count)} to`,
  dateWords: "Date in words",
  dateWordsHint: "friday, in 3 days, 5 dec 3pm",
  pickDay: "Pick a day",
  noDate: "No date",
  nextWeek: "Next week",
  notUnderstood: "This is no date that the list knows: try “friday” or “in 3 days”.",
  /** @param {number} total */
  found: (total) => (total === 0 ? "No task fits." : `${tasksCounted(total)} found.`),
  loading: "Loading tasks…",
  lost: "The server cannot be reached. Trying again…",
  /** @param {number} count */
  unsaved: (count) => `${tasksCounted(count, "change")} will be saved then.`,
  problem: "The list could not be read.",
  again: "Try again",
  chartTitle: "done in the last four weeks",
  /** @param {string} sum @param {string} best @param {string} most @param {string} today */
  chart: (sum, best, most, today) => `Done in the last four weeks: ${sum}. Most on ${best}: ${most}. Today: ${today}.`,
  was: {
    added: "Added",
    completed: "Completed",
    reopened: "Open again",
    deleted: "Deleted",
    restored: "Restored",
    changed: "Changed",
    undone: "Taken back",
    /** @param {string} day */
    moved: (day) => `Moved to ${day}`,
    undated: "Date taken away",
  },
  empty: /** @type {Record<View, [string, string]>} */ ({
    today: ["All done for today", "What is due today or overdue shows up here."],
    upcoming: ["Nothing is coming up", "Add a task with a day, such as “dentist friday 3pm”."],
    all: ["No open tasks", "Write one above, or say it in the chat."],
    done: ["Nothing is done yet", "What you tick off is kept here."],
    deleted: ["Nothing was deleted", "Deleted tasks stay here for 30 days."],
  }),
  emptyFound: ["No task fits", "Other words, or fewer filters, may find it."],
};

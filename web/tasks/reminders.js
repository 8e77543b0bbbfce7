// @ts-check
import { LIST } from "../texts.js";
/** @import {Api} from "./data/api.js" */
/** @import {StoredChange} from "./data/pending.js" */
/** @import {Task} from "./types" */

const WORDS = /\b(remind me|reminder)\b/i;

/**
 * Returns why the reminder that a change has asked for does not reach the user. It is "" if it does, if that is not known, or if
 * the change has not asked for one.
 * @param {StoredChange} change @param {Task[]} tasks as they are after it @param {Api} api
 */
export async function findReminderProblem(change, tasks, api) {
  const settings = asksForReminder(change, tasks) ? await api.alertSettings().catch(() => null) : null;
  if (!settings) return "";
  if (!settings.on) return LIST.reminders.off;
  return settings.channels.some(({ state }) => state === "on") ? "" : LIST.reminders.noChannel;
}

/** Whether the user has asked for a reminder, by the words of a new task or in the editor. @param {StoredChange} change @param {Task[]} tasks */
function asksForReminder({ added, text = "", as = {} }, tasks) {
  if (!added) return Object.values(as).some(({ remind }) => typeof remind === "number");
  return tasks.some(({ title, due, remind }) => typeof remind === "number" || (remind === null && due !== null && WORDS.test(text) && !WORDS.test(title)));
}

// @ts-check
import { askForLabels } from "./views/labels.js";
/** @import {Command} from "../shortcuts.js" */
/** @import {TodoTasks} from "./element.js" */
/** @import {Task} from "./types" */
/** @import {Ui} from "./ui.js" */

/** Where a command was given. @typedef {{ui: Ui, element: TodoTasks, target: HTMLElement}} Context */

/** What moves the focus. @type {Partial<Record<Command, (context: Context) => unknown>>} */
const MOVES = {
  next: (context) => step(context, 1),
  previous: (context) => step(context, -1),
  first: (context) => go(context, 0),
  last: (context) => go(context, context.ui.rows.length - 1),
  selectNext: (context) => extend(context, 1),
  selectPrevious: (context) => extend(context, -1),
  selectAll: ({ ui }) => void ui.selection.selectAll(),
};

/** What is done with tasks. @type {Partial<Record<Command, (ui: Ui, tasks: Task[], context: Context) => unknown>>} */
const ACTIONS = {
  open: (ui, [task]) => ui.editor.edit(task),
  complete,
  high: (ui, tasks) => ui.actions.setPriority(tasks, "high"),
  medium: (ui, tasks) => ui.actions.setPriority(tasks, "medium"),
  low: (ui, tasks) => ui.actions.setPriority(tasks, "low"),
  none: (ui, tasks) => ui.actions.setPriority(tasks, "none"),
  date: (ui, tasks) => ui.moveDialog.open(tasks),
  label: (ui, tasks, { element }) => askForLabels(element, ui, tasks),
  later: (ui, tasks) => ui.actions.shift(tasks, 1),
  earlier: (ui, tasks) => ui.actions.shift(tasks, -1),
  remove: (ui, tasks) => ui.remove(tasks),
};

/** Runs a command of the list; returns false if there is nothing to do. @param {Command} command @param {Context} context */
export function perform(command, context) {
  const { ui, target } = context;
  if (command === "close") return close(ui, target);
  if (target.closest(".task-form")) return false;
  const move = MOVES[command];
  if (move) return void move(context);
  const row = ui.taskOf(target);
  const chosen = row ? ui.selection.with(row) : ui.selection.ids.size > 0 ? ui.selection.tasks : [ui.task(ui.current)];
  const tasks = chosen.filter((task) => task !== undefined);
  if (tasks.length === 0 && target.matches(".rows")) return; // the row with the focus has vanished: no key is for another one
  if (tasks.length === 0) return void go(context, 0); // nothing is done to a task that the user does not see chosen
  if (command === "select") return void ui.selection.pick(row ?? tasks[0], false);
  const open = tasks.filter(({ status }) => status !== "deleted");
  if (open.length > 0) ACTIONS[command]?.(ui, open, context);
}

/** Closes one thing, or leaves the field for a new task, whose text stays. @param {Ui} ui @param {HTMLElement} target */
function close(ui, target) {
  if (target.dataset.part === "new") target.blur();
  else if (ui.editing) void ui.editor.end(false);
  else if (ui.selection.active) ui.selection.end();
  else if (ui.actions.notice) ui.actions.dismiss();
  else return false;
}

/** Completes tasks, and goes on to the next one; reopens them if all are completed. @param {Ui} ui @param {Task[]} tasks @param {Context} context */
function complete(ui, tasks, context) {
  const pending = tasks.filter(({ status }) => status === "pending");
  const next = ui.taskOf(context.target) && pending.length > 0 ? nextPending(ui, new Set(pending)) : undefined;
  ui.selection.end();
  void ui.actions.tick(pending.length > 0 ? pending : tasks, pending.length > 0);
  if (next) go(context, ui.rows.indexOf(next));
}

/** Returns the pending task below the completed ones, or the one above. @param {Ui} ui @param {Set<Task>} completed */
function nextPending({ rows }, completed) {
  const at = rows.findLastIndex((task) => task && completed.has(task));
  const isNext = (/** @type {Task | null} */ task) => task?.status === "pending" && !completed.has(task);
  return rows.slice(at + 1).find(isNext) ?? rows.slice(0, at).findLast(isNext);
}

/** @param {Context} context @param {1 | -1} by */
function step(context, by) {
  const { ui, target } = context;
  const inField = target.matches("input:not([type=checkbox])");
  const at = currentRow(ui);
  go(context, inField || at < 0 ? 0 : at + by);
}

/** Also selects the next row. @param {Context} context @param {1 | -1} by */
function extend(context, by) {
  const { ui } = context;
  const at = currentRow(ui);
  const [task, next] = [ui.rows[at], ui.rows[at + by]];
  if (!task) return go(context, 0);
  if (!ui.selection.ids.has(task.id)) void ui.selection.pick(task, false);
  if (next) void ui.selection.pick(next, true);
  go(context, at + by);
}

/** Focuses a row. @param {Context} context @param {number} index */
function go({ ui, element, target }, index) {
  const row = Math.max(0, Math.min(ui.rows.length - 1, index));
  const task = ui.rows[row];
  const part = target.dataset.part === "tick" ? "tick" : "open";
  if (!task) return void ui.focusRow(row, part);
  ui.current = task.id;
  element.focusOn(task.id, part);
}

/** Returns the number of the current row; -1 without one. @param {Ui} ui */
const currentRow = (ui) => ui.rows.findIndex((task) => task?.id === ui.current);

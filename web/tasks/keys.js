// @ts-check
/** @import {TodoTasks} from "./element.js" */
/** @import {Task} from "./types" */
/** @import {Ui} from "./ui.js" */

/** @type {Record<string, -1 | 1>} */
const STEPS = { ArrowUp: -1, ArrowDown: 1 };

/** Handles the keys of the list. @param {KeyboardEvent} event @param {Ui} ui @param {TodoTasks} element */
export function keydown(event, ui, element) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.defaultPrevented || event.isComposing || target.closest("dialog, .task-form")) return;
  const isText = target.matches("input:not([type=checkbox]), textarea, select");
  if (!inList(event, ui, isText) && !onRow(event, ui, element, target, isText)) return;
  event.preventDefault();
  event.stopPropagation(); // Escape would stop an answer of the chat
}

/** Handles keys that work everywhere in the list; returns whether it was one. @param {KeyboardEvent} event @param {Ui} ui @param {boolean} isText */
function inList({ key, ctrlKey, metaKey, shiftKey }, ui, isText) {
  const undoes = key.toLowerCase() === "z" && (ctrlKey || metaKey) && !shiftKey && !isText;
  if (undoes) void ui.actions.undoLast();
  else if (key === "Escape" && ui.selection.active) ui.selection.end();
  else if (key === "Escape" && ui.actions.notice) ui.actions.dismiss();
  else return false;
  return true;
}

/** @param {KeyboardEvent} event @param {Ui} ui @param {TodoTasks} element @param {HTMLElement} target @param {boolean} isText */
function onRow(event, ui, element, target, isText) {
  const { key } = event;
  const row = /** @type {HTMLElement | null} */ (target.closest("[data-row]"));
  const part = target.dataset.part === "tick" ? "tick" : "open";
  const step = STEPS[key];
  if (step && (row || target.matches(".rows") || (isText && step > 0 && target.matches("input")))) {
    return walk(event, ui, element, step, row ? part : "open", !row && isText);
  }
  const task = row && ui.task(Number(row.dataset.row));
  if (!task || event.ctrlKey || event.metaKey || event.altKey) return false;
  const acts = /** @type {Record<string, () => void>} */ ({
    d: () => ui.startMove(ui.affectedBy(task)),
    x: () => ui.pick(task, false),
    Delete: () => task.status !== "deleted" && ui.remove(ui.affectedBy(task)),
    Home: () => go(ui, element, 0, part),
    End: () => go(ui, element, ui.tasks.length - 1, part),
  });
  acts[key]?.();
  return key in acts;
}

/** Moves to the next row; Shift also selects it, Alt moves the task to the next day. @param {KeyboardEvent} event @param {Ui} ui @param {TodoTasks} element @param {1 | -1} step @param {string} part @param {boolean} first */
function walk({ altKey, shiftKey }, ui, element, step, part, first) {
  const at = ui.tasks.findIndex(({ id }) => id === ui.current);
  const task = ui.tasks[at];
  if (altKey) {
    if (task && !first) void ui.actions.shift(ui.affectedBy(task), step);
    return true;
  }
  const to = first ? 0 : Math.max(0, Math.min(ui.tasks.length - 1, at + step));
  if (shiftKey && task && !first) {
    if (!ui.selection.ids.has(task.id)) ui.pick(task, false);
    ui.pick(ui.tasks[to], true);
  }
  go(ui, element, to, part);
  return true;
}

/** @param {Ui} ui @param {TodoTasks} element @param {number} index @param {string} part */
function go(ui, element, index, part) {
  const task = ui.tasks[index];
  if (!task) return;
  ui.current = task.id;
  element.focusOn(task.id, part);
}

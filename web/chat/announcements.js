// @ts-check
import { TEXTS } from "../texts.js";
import { actionKey } from "./actions.js";
import { textOf } from "./tags.js";
import { childrenOf, labelOf } from "./widgets.js";
/** @import {Action, Item, Widget} from "./types" */

const SPOKEN = TEXTS.spoken;
const MARKS = /\*\*|__|~~|`+|^#+ |^> /gm; // Markdown characters, which are not read out
const NAMED = 10; // tasks of a list
const MAX_SPOKEN = 4000; // characters: more takes minutes to hear, and the browser long to lay out

/** Returns the announcement of a completed answer. @param {readonly Item[]} answer */
export function spokenAnswer(answer) {
  const parts = answer.map(spoken).filter(Boolean);
  const text = parts.join("\n");
  return text ? SPOKEN.answer(text.length > MAX_SPOKEN ? `${text.slice(0, MAX_SPOKEN)}…` : text) : SPOKEN.ended;
}

/** Returns the announcement after an action in a widget. @param {Action} action @param {Item | undefined} before @param {Item | undefined} after */
export function spokenAction(action, before, after) {
  if (!after) return null;
  const known = new Set(before && partsOf(before));
  return spokenTick(action, before, after) ?? partsOf(after).filter((part) => !known.has(part)).join("; ");
}

/** @param {Action} action @param {Item | undefined} before @param {Item} after */
function spokenTick(action, before, after) {
  const same = actionKey(action);
  const ticked = boxesOf(before?.widget).find(({ onChangeAction: own }) => own && actionKey(/** @type {Action} */ (own)) === same);
  const box = boxesOf(after.widget).find(({ key }) => key === ticked?.key);
  if (!box || box.defaultChecked === ticked?.defaultChecked) return null;
  return [`${box.label}: ${box.defaultChecked ? SPOKEN.done : SPOKEN.reopened}.`, headingOf(after.widget)].join(" ").trim();
}

/** @param {Item} item */
function spoken(item) {
  if (item.type === "task") return item.task?.title ?? ""; // why it ended early
  if (item.type === "assistant_message") return textOf(item).replace(MARKS, "").trim();
  if (!item.widget) return "";
  const [heading, ...tasks] = partsOf(item);
  if (tasks.length === 0) return `${heading}.`;
  const more = tasks.length > NAMED ? [SPOKEN.more(tasks.length - NAMED)] : [];
  return `${heading}: ${[...tasks.slice(0, NAMED), ...more].join("; ")}.`;
}

/** Returns the text of a widget's heading and its tasks. @param {Item} item */
function partsOf({ widget }) {
  if (!widget) return [];
  const list = widget.type === "ListView";
  const tasks = (list ? childrenOf(widget) : [widget]).flatMap((row) => boxesOf(row).map((box) => named(box, list ? row : undefined)));
  if (!list && tasks.length === 0) return [...badgesOf(widget), ...all(widget, "Text").map(({ value }) => String(value))];
  return [list ? headingOf(widget) : badgesOf(widget).join(", "), ...tasks];
}

/** Returns the text of a task with its badges. @param {Widget} box @param {Widget | undefined} row */
const named = ({ label, defaultChecked }, row) => [label, ...(defaultChecked ? [SPOKEN.done] : []), ...badgesOf(row)].join(", ");

/** @param {Widget | undefined} widget @param {string} type @returns {Widget[]} */
const all = (widget, type) =>
  !widget ? [] : widget.type === type ? [widget] : childrenOf(widget).flatMap((child) => all(child, type));

/** @param {Widget | undefined} widget */
const boxesOf = (widget) => all(widget, "Checkbox");

/** @param {Widget | undefined} widget */
const badgesOf = (widget) => all(widget, "Badge").map(labelOf);

/** @param {Widget | undefined} widget */
const headingOf = (widget) => /** @type {{text?: string} | undefined} */ (widget?.status)?.text ?? "";

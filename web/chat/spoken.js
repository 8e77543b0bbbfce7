// @ts-check
import { actionKey } from "./actions.js";
import { textOf } from "./outgoing.js";
import { childrenOf } from "./widgets.js";
/** @import {Action, Item, Widget} from "./types" */

const MARKS = /\*\*|__|~~|`+|^#+ |^> /gm; // of Markdown, which nobody wants to hear
const NAMED = 10; // tasks of a list

/** What is read out when an answer has ended: all that it shows. @param {readonly Item[]} answer */
export function spokenAnswer(answer) {
  const parts = answer.map(spoken).filter(Boolean);
  return parts.length ? `Assistant: ${parts.join("\n")}` : "The answer has ended.";
}

/** What is read out when a box was ticked. @param {Action} action @param {Item | undefined} before @param {Item | undefined} after */
export function spokenTick(action, before, after) {
  const same = actionKey(action);
  const ticked = boxesOf(before?.widget).find(({ onChangeAction: own }) => own && actionKey(/** @type {Action} */ (own)) === same);
  const box = boxesOf(after?.widget).find(({ key }) => key === ticked?.key);
  return box?.defaultChecked ? [`${box.label}: done.`, headingOf(after?.widget)].join(" ").trim() : null;
}

/** @param {Item} item */
function spoken({ type, widget, ...item }) {
  if (type === "assistant_message") return textOf({ type, ...item }).replace(MARKS, "").trim();
  if (type !== "widget" || !widget) return "";
  const boxes = boxesOf(widget);
  const names = boxes.slice(0, NAMED).map(({ label, defaultChecked }) => (defaultChecked ? `${label}, done` : `${label}`));
  const more = boxes.length > NAMED ? [`and ${boxes.length - NAMED} more`] : [];
  const heading = widget.type === "ListView" ? headingOf(widget) : badgesOf(widget).join(", ");
  return `${heading}: ${[...names, ...more].join("; ")}.`;
}

/** @param {Widget | undefined} widget @param {string} type @returns {Widget[]} */
const all = (widget, type) =>
  !widget ? [] : widget.type === type ? [widget] : childrenOf(widget).flatMap((child) => all(child, type));

/** @param {Widget | undefined} widget */
const boxesOf = (widget) => all(widget, "Checkbox");

/** @param {Widget} widget */
const badgesOf = (widget) => all(widget, "Badge").map(({ label }) => label);

/** A list's. @param {Widget | undefined} widget */
const headingOf = (widget) => /** @type {{text?: string} | undefined} */ (widget?.status)?.text ?? "";

// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { iconButton } from "../icons.js";
import { TEXTS } from "../texts.js";
import { copyButton } from "./code.js";
import { textOf } from "./tags.js";
/** @import {Item} from "./types" */
/** @import {Ui} from "./ui.js" */

/** Renders the actions for an answer, below its last item. @param {readonly Item[]} answer @param {Ui} ui */
export function controls(answer, ui) {
  const { conversation } = ui;
  const last = answer.at(-1);
  const isLast = last === conversation.items.at(-1);
  const { id, streaming } = conversation;
  if (!last || (isLast && (streaming || ui.chat.tabs.answering.has(id)))) return nothing;
  const rated = answer.findLast(({ type }) => type === "assistant_message");
  return html`
    <div class="controls">
      ${copyView(answer, ui)}
      ${rated ? thumbs(rated, ui) : nothing}
      ${isLast && conversation.lastQuestion && !conversation.waiting ? iconButton("retry", TEXTS.talk.answerAgain, () => ui.tryAgain("answer")) : nothing}
    </div>
  `;
}

/** @param {readonly Item[]} answer @param {Ui} ui */
function copyView(answer, ui) {
  const hasText = answer.some((one) => one.copy_text || textOf(one));
  if (!navigator.clipboard || !hasText) return nothing; // needs https or localhost
  return copyButton(TEXTS.copy, ({ currentTarget }) => ui.copy(/** @type {Element} */ (currentTarget), copyOf(answer)));
}

/** @param {Item} item @param {Ui} ui */
function thumbs(item, ui) {
  return [
    iconButton("good", TEXTS.talk.good, () => ui.chat.rate(item, "positive"), { pressed: item.feedback === "positive" }),
    iconButton("poor", TEXTS.talk.poor, () => ui.chat.rate(item, "negative"), { pressed: item.feedback === "negative" }),
  ];
}

/** Returns an answer's texts and lists as Markdown; its cards only if there is nothing else. @param {readonly Item[]} answer */
function copyOf(answer) {
  const texts = answer.map((item) => (item.widget?.type === "ListView" ? item.copy_text : textOf(item))).filter(Boolean);
  return texts.join("\n\n") || answer.map(({ copy_text }) => copy_text).filter(Boolean).join("\n");
}

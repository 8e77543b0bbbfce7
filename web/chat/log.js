// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { icon } from "../icons.js";
import { controls } from "./controls.js";
import { itemView } from "./items.js";
import { load, markdown } from "./markdown.js";
export { queueView } from "./queue-view.js";
export { spokenAction, spokenAnswer } from "./announcements.js";
/** @import {Conversation} from "./conversation.js" */
/** @import {Item} from "./types" */
/** @import {Ui} from "./ui.js" */

void load();

/** Renders the items of a conversation. @param {Ui} ui */
export function messagesView(ui) {
  const { conversation } = ui;
  const { items } = conversation;
  const answers = answersOf(items);
  return repeat(
    items,
    ({ id }) => id,
    (item, index) => [
      itemView(item, ui),
      item === answers[index]?.at(-1) ? controls(answers[index], ui) : nothing,
      noticesAfter(item, conversation),
    ],
  );
}

/** Returns for each item the answer that it belongs to. @param {readonly Item[]} items */
function answersOf(items) {
  /** @type {Item[]} */
  let answer = [];
  return items.map((item) => {
    if (item.type === "user_message") answer = [];
    else answer.push(item);
    return answer;
  });
}

/** @param {Item} item @param {Conversation} conversation */
const noticesAfter = (item, { notices }) =>
  notices
    .filter(({ after }) => after === item.id)
    .map(
      ({ level, title, message }) => html`
        <div class="notice ${level}" role="status">
          ${icon(level === "info" ? "info" : "warning")}
          <div class="markdown">${title ? html`<strong dir="auto">${title}</strong>` : nothing} ${markdown(message)}</div>
        </div>
      `,
    );

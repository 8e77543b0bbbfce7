// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { icon } from "../icons.js";
import { controls } from "./controls.js";
import { itemView } from "./items.js";
import { beginDrawing, formatted } from "./formatted.js";
import { load } from "./markdown.js";
export { spokenAction, spokenAnswer } from "./announcements.js";
/** @import {Conversation} from "./conversation.js" */
/** @import {Item} from "./types" */
/** @import {Ui} from "./ui.js" */

await load(); // so that no text is drawn twice

/** Renders the items of a conversation. @param {Ui} ui */
export function messagesView(ui) {
  const { conversation } = ui;
  const { items } = conversation;
  const answers = answersOf(items);
  beginDrawing(ui.redraw);
  const views = items
    .map((item, index) => ({ item, answer: answers[index] }))
    .reverse() // as the newest texts are read first
    .map(({ item, answer }) => [
      itemView(item, ui),
      item === answer?.at(-1) ? controls(answer, ui) : nothing,
      noticesAfter(item, conversation),
    ])
    .reverse();
  return repeat(
    items,
    ({ id }) => id,
    (_, index) => views[index],
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
      (notice) => html`
        <div class="notice warning" role="status">
          ${icon("warning")}
          <div class="markdown">${formatted(notice, notice.message)}</div>
        </div>
      `,
    );

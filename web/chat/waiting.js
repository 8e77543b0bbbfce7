// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { TEXTS } from "../texts.js";
import { contentOf } from "./tags.js";
import { directionOf, plain } from "./plain.js";
/** @import {Outgoing} from "./outgoing.js" */
/** @import {Content, Item, Unread} from "./types" */
/** @import {Ui} from "./ui.js" */

/** Renders messages that are not confirmed. @param {readonly Outgoing[]} messages @param {Ui} ui */
export const outgoingView = (messages, ui) => repeat(messages, ({ key }) => key, (outgoing) => messageView(outgoing, ui));

/** Renders messages of the user until the views of all items are loaded. @param {readonly Item[]} items */
export const questionsView = (items) =>
  items
    .filter(({ type }) => type === "user_message")
    .map(({ content = [] }) => html`<article class="question" translate="no" aria-label=${TEXTS.talk.you}>${content.map(partView)}</article>`);

/** @param {Content} part */
const partView = ({ type, text = "" }) =>
  type === "input_tag" ? html`<span class="tag" dir="auto">@${text}</span>` : html`<span class="text" dir=${directionOf(text)}>${plain(text)}</span>`;

/** @param {Outgoing} outgoing @param {Ui} ui */
function messageView(outgoing, ui) {
  const { old, message } = outgoing;
  const isSent = outgoing === ui.conversation.sent;
  return html`
    <article class="question ${isSent ? "" : "unread"}" translate="no" aria-label=${TEXTS.talk.you}>
      ${(outgoing.isEarlier ? contentOf(message.text) : message.content).map(partView)}
      ${isSent ? nothing : html`<span class="quiet">${outgoing.isEarlier ? TEXTS.talk.earlier : old ? TEXTS.talk.old : TEXTS.talk.notSentYet}</span>`}
      ${old
        ? [
            button(outgoing.isEarlier ? TEXTS.talk.send : TEXTS.queue.sendAgain, () => ui.chat.sendAgain(outgoing)),
            button(TEXTS.discard, () => ui.chat.discard(outgoing)),
          ]
        : nothing}
    </article>
  `;
}

/** Renders the messages that the assistant has not read yet. @param {Ui} ui */
export function queueView(ui) {
  const { messages } = ui.conversation.queue;
  if (!messages.length) return nothing;
  return html`
    <ul class="queue" translate="no" aria-label=${TEXTS.queue.title}>
      ${repeat(messages, ({ id }) => id, (message) => unreadView(message, ui))}
    </ul>
  `;
}

/** @param {Unread} message @param {Ui} ui */
const unreadView = (message, ui) => html`
  <li class="question unread">
    <span class="text" dir="auto">${message.text}</span>
    <span class="quiet">${TEXTS.queue[message.state]}</span>
    ${message.state === "queued" ? button(TEXTS.queue.sendNow, () => ui.chat.sendNow(message)) : nothing}
    ${message.state === "unsent" && ui.ready ? button(TEXTS.queue.sendAgain, () => ui.sendAgain(message)) : nothing}
    ${button(TEXTS.queue.remove, () => ui.chat.unqueue(message))}
  </li>
`;

/** @param {string} label @param {() => unknown} action */
const button = (label, action) => html`<button type="button" class="text-button" @click=${action}>${label}</button>`;

// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { TEXTS } from "../texts.js";
/** @import {Ui} from "./ui.js" */
/** @import {Unread} from "./types" */

const STATES = {
  sending: TEXTS.queue.sending,
  queued: TEXTS.queue.queued,
  next: TEXTS.queue.next,
  unsent: TEXTS.queue.unsent,
};

/** Renders the messages that the assistant has not read yet. @param {Ui} ui */
export function queueView(ui) {
  const { messages } = ui.conversation.queue;
  if (!messages.length) return nothing;
  return html`
    <ul class="queue" translate="no" aria-label=${TEXTS.queue.title}>
      ${repeat(messages, ({ id }) => id, (message) => messageView(message, ui))}
    </ul>
  `;
}

/** @param {Unread} message @param {Ui} ui */
const messageView = (message, ui) => html`
  <li class="question unread">
    <span class="text" dir="auto">${message.text}</span>
    <span class="quiet">${STATES[message.state]}</span>
    ${message.state === "queued" ? act(TEXTS.queue.sendNow, () => ui.chat.sendNow(message)) : nothing}
    ${message.state === "unsent" && ui.ready ? act(TEXTS.queue.sendAgain, () => ui.sendAgain(message)) : nothing}
    ${message.state === "sending" ? nothing : act(TEXTS.queue.remove, () => ui.chat.unqueue(message))}
  </li>
`;

/** @param {string} label @param {() => unknown} action */
const act = (label, action) => html`<button type="button" class="text-button" @click=${action}>${label}</button>`;

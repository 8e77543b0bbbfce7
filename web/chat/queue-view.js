// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
/** @import {Ui} from "./ui.js" */
/** @import {Unread} from "./types" */

const SAID = {
  sending: "Sending…",
  queued: "Waits until this answer is done.",
  next: "Is read next.",
  unsent: "Not sent.",
};

/** What the assistant has not read yet, below everything else. @param {Ui} ui */
export function queueView(ui) {
  const { messages } = ui.conversation.queue;
  if (!messages.length) return nothing;
  return html`
    <ul class="queue" aria-label="Not read yet">
      ${repeat(messages, ({ id }) => id, (message) => messageView(message, ui))}
    </ul>
  `;
}

/** @param {Unread} message @param {Ui} ui */
const messageView = (message, ui) => html`
  <li class="question unread">
    <span class="text" dir="auto">${message.text}</span>
    <span class="quiet">${SAID[message.state]}</span>
    ${message.state === "queued" ? act("Send now", () => ui.chat.sendNow(message)) : nothing}
    ${message.state === "unsent" && ui.ready ? act("Send again", () => ui.sendAgain(message)) : nothing}
    ${message.state === "sending" ? nothing : act("Remove", () => ui.chat.unqueue(message))}
  </li>
`;

/** @param {string} label @param {() => unknown} action */
const act = (label, action) => html`<button type="button" class="text-button" @click=${action}>${label}</button>`;

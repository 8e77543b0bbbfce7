// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { icon } from "../icons.js";
import { TEXTS } from "../texts.js";

/** @import {Ui} from "./ui.js" */

/** @param {Ui} ui */
export function composerView(ui) {
  const { conversation, draft, messageChars: longest } = ui;
  const { status, streaming, allowCancel } = conversation;
  if (status.type !== "active") {
    return html`<p class="composer locked" dir="auto">${status.reason ?? TEXTS.talk.closed}</p>`;
  }
  const over = draft.length > longest;
  return html`
    <form
      class="composer"
      @submit=${(/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        void ui.send();
      }}
    >
      <textarea
        rows="1"
        dir="auto"
        aria-label=${TEXTS.talk.message}
        aria-invalid=${over}
        aria-describedby="message-length"
        placeholder=${ui.options.composer?.placeholder ?? TEXTS.talk.message}
        @input=${(/** @type {InputEvent} */ event) => ui.write(/** @type {HTMLTextAreaElement} */ (event.target).value)}
        @keydown=${(/** @type {KeyboardEvent} */ event) => {
          const composing = event.isComposing || event.keyCode === 229; // Safari ends composing before it tells the key
          if (event.key === "ArrowUp" && !composing && ui.recall()) event.preventDefault();
          if (event.key !== "Enter" || event.shiftKey || composing) return;
          event.preventDefault();
          void ui.send();
        }}
      ></textarea>
      <span id="message-length" class=${over ? "over" : "quiet"}>
        ${draft.length > longest * 0.9
          ? TEXTS.talk.length(draft.length, longest)
          : nothing}
      </span>
      <div class="rounds">
        ${streaming && allowCancel
          ? html`<button type="button" class="round stop" aria-label=${TEXTS.talk.stop} title=${TEXTS.talk.stop} @click=${() => conversation.stop()}>${icon("stop")}</button>`
          : nothing}
        ${ui.queueable
          ? html`<button type="submit" class="round" aria-label=${TEXTS.talk.queue} title=${TEXTS.talk.queueWhen}>${icon("send")}</button>`
          : streaming && allowCancel
            ? nothing
            : html`<button type="submit" class="round" aria-label=${TEXTS.talk.send} title=${TEXTS.talk.send} ?disabled=${!ui.sendable}>${icon("send")}</button>`}
      </div>
    </form>
  `;
}

/** Make the field as high as its text; the style sheet says how high it may become. @param {HTMLTextAreaElement} field */
export function grow(field) {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

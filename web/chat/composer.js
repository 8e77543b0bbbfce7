// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { icon } from "../icons.js";

/** @import {Ui} from "./ui.js" */

/** @param {Ui} ui */
export function composerView(ui) {
  const { conversation, draft, messageChars: longest } = ui;
  const { status, streaming, allowCancel } = conversation;
  if (status.type !== "active") {
    return html`<p class="composer locked" dir="auto">${status.reason ?? "This conversation is closed."}</p>`;
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
        aria-label="Message"
        aria-invalid=${over}
        aria-describedby="message-length"
        placeholder=${ui.options.composer?.placeholder ?? "Message"}
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
          ? html`${draft.length.toLocaleString()} of ${longest.toLocaleString()} characters`
          : nothing}
      </span>
      <div class="rounds">
        ${streaming && allowCancel
          ? html`<button type="button" class="round stop" aria-label="Stop" title="Stop" @click=${() => conversation.stop()}>${icon("stop")}</button>`
          : nothing}
        ${ui.queueable
          ? html`<button type="submit" class="round" aria-label="Queue" title="Send after this answer">${icon("send")}</button>`
          : streaming && allowCancel
            ? nothing
            : html`<button type="submit" class="round" aria-label="Send" title="Send" ?disabled=${!ui.sendable}>${icon("send")}</button>`}
      </div>
    </form>
  `;
}

/** Make the field as high as its text; the style sheet says how high it may become. @param {HTMLTextAreaElement} field */
export function grow(field) {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

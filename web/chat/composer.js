// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { icon, iconButton } from "../icons.js";
import { TEXTS } from "../texts.js";
import { lengthOf, MAX_TAGS, pieces } from "./tags.js";

/** @import {Ui} from "./ui.js" */

const MOST_OVER = 2; // times the longest message, which can still be shortened in the field
const TALL = 2000; // characters, which always need the greatest height

/** @param {Ui} ui */
export function composerView(ui) {
  const { conversation, draft, menu, messageChars: longest } = ui;
  const { streaming } = conversation;
  const open = menu?.open;
  const length = lengthOf(draft);
  const over = length > longest;
  const parts = pieces(draft);
  return html`
    ${selectedView(ui)} ${ui.files?.view()}
    <form
      class="composer"
      @submit=${(/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        void ui.send();
      }}
    >
      ${menu?.view()}
      <div class="field">
        ${parts.some(({ id }) => id)
          ? html`<div class="behind" dir="auto" aria-hidden="true">${parts.map(({ id, text }) => (id ? html`<mark>${text}</mark>` : text))}</div>`
          : nothing}
        <textarea
          rows="1"
          role=${open ? "combobox" : nothing}
          aria-expanded=${open || nothing}
          aria-autocomplete=${open ? "list" : nothing}
          aria-controls=${open ? "tag-options" : nothing}
          aria-activedescendant=${open ? `tag-option-${menu?.active}` : nothing}
          dir="auto"
          aria-label=${TEXTS.talk.message}
          aria-invalid=${over}
          aria-describedby="message-length"
          maxlength=${longest * MOST_OVER}
          @beforeinput=${(/** @type {InputEvent} */ event) => {
            if (!isTooLong(event, longest * MOST_OVER)) return ui.refuse(false);
            event.preventDefault();
            ui.refuse(true);
          }}
          placeholder=${TEXTS.start.placeholder}
          @input=${(/** @type {{target: HTMLTextAreaElement}} */ { target }) => {
            ui.write(target.value);
            void ui.offer(target);
          }}
          @click=${(/** @type {{target: HTMLTextAreaElement}} */ { target }) => ui.offer(target)}
          @blur=${() => menu?.close()}
          @scroll=${(/** @type {{target: HTMLTextAreaElement}} */ { target }) => target.previousElementSibling?.scrollTo(0, target.scrollTop)}
          @keydown=${(/** @type {KeyboardEvent} */ event) => {
            const composing = event.isComposing || event.keyCode === 229; // Safari ends the composition before the key event
            if (!composing && menu?.keydown(event)) return;
            if (event.key === "ArrowUp" && !composing && ui.recall()) event.preventDefault();
            if (event.key !== "Enter" || event.shiftKey || composing) return;
            event.preventDefault();
            void ui.send();
          }}
        ></textarea>
      </div>
      <span id="message-length" translate="no" class=${over || ui.refused ? "over" : "quiet"}>
        ${ui.refused ? TEXTS.talk.tooLong(longest) : length > longest * 0.9 ? TEXTS.talk.length(length, longest) : nothing}
      </span>
      <div class="rounds">
        ${ui.largestFile ? filesButton(ui) : nothing}
        ${streaming
          ? html`<button type="button" class="round stop" aria-label=${TEXTS.talk.stop} title=${TEXTS.talk.stop} @click=${() => conversation.stop()}>${icon("stop")}</button>`
          : nothing}
        ${ui.queueable
          ? html`<button type="submit" class="round" aria-label=${TEXTS.talk.queue} title=${TEXTS.talk.queueWhen}>${icon("send")}</button>`
          : streaming
            ? nothing
            : html`<button type="submit" class="round" aria-label=${TEXTS.talk.send} title=${TEXTS.talk.send} ?disabled=${!ui.sendable}>${icon("send")}</button>`}
      </div>
    </form>
  `;
}

/** @param {Ui} ui */
const filesButton = (ui) => html`
  <input
    type="file"
    multiple
    hidden
    @change=${(/** @type {{target: HTMLInputElement}} */ { target }) => {
      void ui.attach([...(target.files ?? [])]);
      target.value = ""; // so that the same file can be chosen again
    }}
  />
  ${iconButton("clip", TEXTS.files.add, () => ui.chooseFiles())}
`;

/** Renders the selected tasks, which the message mentions. @param {Ui} ui */
function selectedView(ui) {
  const { length } = ui.selected;
  if (length === 0) return nothing;
  const many = length > MAX_TAGS;
  return html`
    <p class="going-along ${many ? "over" : ""}">
      <span role="status" translate="no">${TEXTS.talk.selected(length)}${many ? ` ${TEXTS.talk.atMost(MAX_TAGS)}` : nothing}</span>
      ${iconButton("close", TEXTS.talk.unselect, () => ui.unselect())}
    </p>
  `;
}

/** Whether a text would make the field longer than that: the browser takes seconds for 400,000 characters. @param {InputEvent} event @param {number} longest */
function isTooLong({ data, dataTransfer, target }, longest) {
  const { value, selectionStart, selectionEnd } = /** @type {HTMLTextAreaElement} */ (target);
  const added = (data ?? dataTransfer?.getData("text/plain") ?? "").length;
  return added > 1 && value.length - (selectionEnd - selectionStart) + added > longest;
}

/** Adapts the field's height to its text; the style sheet limits it. @param {HTMLTextAreaElement} field */
export function grow(field) {
  if (field.value.length > TALL) return void (field.style.height = "100rem");
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

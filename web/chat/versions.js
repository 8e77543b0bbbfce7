// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { icon } from "../icons.js";
import { TEXTS } from "../texts.js";
import { textOf } from "./tags.js";
/** @import {Icon} from "../icons.js" */
/** @import {Item} from "./types" */
/** @import {Ui} from "./ui.js" */

/** Renders the versions of a message and its edit button. @param {Item} item @param {Ui} ui */
export function versionsView(item, ui) {
  const { conversation, options } = ui;
  const editable = options.threadItemActions?.retry;
  if (!editable && !item.versions) return nothing;
  const busy = conversation.streaming || !item.thread_id; // not stored yet
  return html`
    <div class="controls asked ${busy ? "busy" : ""}" data-of=${item.id}>
      ${item.versions ? pager(item, ui) : nothing}
      ${editable ? editButton(item, ui) : nothing}
    </div>
  `;
}

/** @param {Item} item @param {Ui} ui */
const editButton = (item, ui) => html`
  <button
    type="button"
    class="icon-button"
    data-edits
    aria-label=${TEXTS.versions.begin}
    title=${TEXTS.versions.begin}
    @click=${() => ui.startEdit(item)}
  >
    ${icon("rename")}
  </button>
`;

/** @param {Item} item @param {Ui} ui */
function pager({ versions, ...item }, ui) {
  if (!versions) return nothing;
  const { number, count } = versions;
  /** @param {"previous" | "next"} side @param {Icon} drawn @param {string} label */
  const arrow = (side, drawn, label) => html`
    <button
      type="button"
      class="icon-button"
      data-side=${side}
      aria-label=${label}
      title=${label}
      ?disabled=${!versions[side]}
      @click=${() => ui.showVersion({ ...item, versions }, side)}
    >
      ${icon(drawn)}
    </button>
  `;
  return html`
    <span class="versions" role="group" aria-label=${TEXTS.versions.title}>
      ${arrow("previous", "left", TEXTS.versions.previous)}<span translate="no">${TEXTS.versions.place(number, count)}</span>${arrow("next", "right", TEXTS.versions.next)}
    </span>
  `;
}

/** Renders the form that edits a message. @param {Item} item @param {Ui} ui */
export const editForm = (item, ui) => html`
  <form
    class="question editing"
    aria-label=${TEXTS.versions.edit}
    @submit=${(/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      const { message } = /** @type {HTMLFormElement} */ (event.target);
      void ui.saveEdit(item, message.value.trim());
    }}
    @keydown=${(/** @type {KeyboardEvent} */ event) => {
      if (event.isComposing || event.keyCode === 229) return;
      const inText = event.target instanceof HTMLTextAreaElement;
      if (event.key === "Enter" && !event.shiftKey && inText) {
        event.preventDefault();
        /** @type {HTMLFormElement} */ (event.currentTarget).requestSubmit();
      } else if (event.key === "Escape") {
        event.stopPropagation();
        ui.endEdit(item, true);
      }
    }}
  >
    ${item.quoted_text ? html`<blockquote dir="auto">${item.quoted_text}</blockquote>` : nothing}
    <textarea
      name="message"
      rows="3"
      dir="auto"
      aria-label=${TEXTS.versions.field}
      required
      maxlength=${ui.messageChars}
      .defaultValue=${ui.edits.get(item.id) ?? textOf(item)}
      @input=${(/** @type {{target: HTMLTextAreaElement}} */ { target }) => ui.edits.set(item.id, target.value)}
    ></textarea>
    <div class="row">
      <button type="button" class="button" @click=${() => ui.endEdit(item)}>${TEXTS.cancel}</button>
      <button type="submit" class="button primary" aria-disabled=${ui.ready ? nothing : "true"}>${TEXTS.save}</button>
    </div>
  </form>
`;

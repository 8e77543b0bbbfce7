// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { iconButton } from "../icons.js";
import { TEXTS } from "../texts.js";
import { textOf } from "./tags.js";
/** @import {Item} from "./types" */
/** @import {Ui} from "./ui.js" */

/** Renders the versions of a message and its edit button. @param {Item} item @param {Ui} ui */
export function versionsView(item, ui) {
  const busy = ui.conversation.streaming || !item.thread_id; // not stored yet
  return html`
    <div class="controls asked ${busy ? "busy" : ""}" data-of=${item.id}>
      ${pager(item, ui)}
      ${iconButton("rename", TEXTS.versions.begin, () => ui.startEdit(item), { part: "edit" })}
    </div>
  `;
}

/** @param {Item} item @param {Ui} ui */
function pager(item, ui) {
  const { versions } = item;
  if (!versions) return nothing;
  const { number, count, previous, next } = versions;
  return html`
    <span class="versions" role="group" aria-label=${TEXTS.versions.title}>
      ${iconButton("left", TEXTS.versions.previous, () => ui.showVersion(item, "previous"), { part: "previous", disabled: !previous })}<span translate="no"
        >${TEXTS.versions.place(number, count)}</span
      >${iconButton("right", TEXTS.versions.next, () => ui.showVersion(item, "next"), { part: "next", disabled: !next })}
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
      .defaultValue=${ui.editOf(item) ?? textOf(item)}
      @input=${(/** @type {{target: HTMLTextAreaElement}} */ { target }) => ui.writeEdit(item, target.value)}
    ></textarea>
    <div class="row">
      <button type="button" class="button" @click=${() => ui.endEdit(item)}>${TEXTS.cancel}</button>
      <button type="submit" class="button primary" aria-disabled=${ui.ready ? nothing : "true"}>${TEXTS.save}</button>
    </div>
  </form>
`;

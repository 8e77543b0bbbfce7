// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { TEXTS } from "../texts.js";
import { pieces, nameTask } from "./tags.js";
/** @import {Entity} from "@openai/chatkit" */
/** @import {Ui} from "./ui.js" */

const PAUSE = 150; // ms between two letters of who types on
const TYPED = /(?:^|\s)@((?!\s)[^\n@]{0,60})$/;

/** The menu of tasks after an "@" in the composer. */
export class TagMenu {
  /** @type {readonly Entity[]} */
  offered = [];
  active = 0;
  /** The text from the "@" to the caret; null without one. @type {{start: number, query: string} | null} */
  #typed = null;
  /** A text without results; longer texts have none either. @type {{start: number, query: string} | null} */
  #none = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #ui;

  /** @param {Ui} ui */
  constructor(ui) {
    this.#ui = ui;
  }

  get open() {
    return this.offered.length > 0;
  }

  /** Handles a change of the text or the caret. @param {HTMLTextAreaElement} field */
  look({ value, selectionStart, selectionEnd }) {
    const before = value.slice(0, selectionEnd);
    const query = selectionStart === selectionEnd ? TYPED.exec(before)?.[1] : undefined;
    if (query === undefined) return this.close();
    const typed = { start: selectionEnd - query.length - 1, query };
    const { start, query: had } = this.#none ?? {};
    const none = start === typed.start && query.startsWith(had ?? "");
    if (none || pieces(before.slice(typed.start))[0]?.id) return this.close();
    if (this.#typed?.start === typed.start && this.#typed.query === query) return;
    this.#typed = typed;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#search(typed), PAUSE);
  }

  /** @param {{start: number, query: string}} typed */
  async #search(typed) {
    const found = (await this.#ui.options.entities?.onTagSearch?.(typed.query).catch(() => [])) ?? [];
    if (this.#typed !== typed) return;
    if (found.length === 0) this.#none = typed;
    this.offered = found;
    this.active = 0;
    this.#ui.redraw();
  }

  close() {
    clearTimeout(this.#timer);
    this.#typed = null;
    if (!this.open) return;
    this.offered = [];
    this.#ui.redraw();
  }

  /** Handles a key; returns whether it belonged to the menu. @param {KeyboardEvent} event */
  keydown(event) {
    const { length } = this.offered;
    if (length === 0) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      this.active = (this.active + (event.key === "ArrowDown" ? 1 : length - 1)) % length;
      this.#ui.redraw();
    } else if (event.key === "Enter" || (event.key === "Tab" && !event.shiftKey)) {
      this.choose(this.active);
    } else if (event.key === "Escape") {
      this.#none = this.#typed;
      this.close();
    } else {
      if (/^(Arrow|Home|End)/.test(event.key)) this.close(); // the caret moves
      return false;
    }
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  /** @param {number} index */
  choose(index) {
    const [entity, typed, field] = [this.offered[index], this.#typed, this.#ui.composer];
    if (!entity || !typed || !field) return;
    this.close();
    const text = `${nameTask(entity.id, entity.title, field.value)} `;
    field.focus();
    field.setSelectionRange(typed.start, field.selectionEnd);
    // Unlike a value set by a script, the user can undo this.
    if (document.execCommand("insertText", false, text)) return;
    field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
    this.#ui.write(field.value);
  }

  view() {
    if (!this.open) return nothing;
    return html`
      <ul id="tag-options" class="tag-options" role="listbox" aria-label=${TEXTS.tasks} @mousedown=${(/** @type {Event} */ event) => event.preventDefault()}>
        ${this.offered.map(
          ({ title, data }, index) => html`
            <li id="tag-option-${index}" role="option" aria-selected=${index === this.active} @click=${() => this.choose(index)}>
              <span dir="auto">${title}</span> <small>${data?.due}</small>
            </li>
          `,
        )}
      </ul>
    `;
  }
}

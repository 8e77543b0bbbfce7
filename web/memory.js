// @ts-check
import { sentence } from "./chat/protocol.js";
import { storage } from "./chat/storage.js";
import { fetchFromHere } from "./http.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
/** @import {Unsaved} from "./unsaved.js" */

const MESSAGES = TEXTS.memory;
const DRAFT = "memory";
const BEFORE = "todo.memory.draft"; // where version 0.2 and before stored it, for all users of the browser

/**
 * @typedef {object} State
 * @property {string} [version] of the stored text; undefined until it is loaded
 * @property {boolean} [unsaved] whether the text differs from the stored one
 * @property {string} [status] how much of the memory the assistant reads
 * @property {string} [other] the stored text, if it was changed in another place
 * @property {string} [problem]
 */

/** An unsaved text and the version that it is based on. @typedef {{text: string, version: string}} Draft */

/**
 * Shows the dialog in which a user edits the memory. An unsaved text is shown again the next time.
 * @param {Page} page
 */
export const showMemory = (page) => new MemoryDialog(page).open();

/** @typedef {{say: (text: string) => void, unauthorized: () => void, unsaved: Unsaved}} Page */

class MemoryDialog {
  #dialog = document.createElement("dialog");
  /** @type {State} */
  #state = {};
  /** The stored text. */
  #stored = "";
  #page;

  /** @param {Page} page */
  constructor(page) {
    this.#page = page;
    this.#dialog.className = "sheet memory";
    this.#dialog.setAttribute("aria-labelledby", "memory-title");
    this.#dialog.addEventListener("close", () => {
      this.#dialog.remove();
      page.unsaved.removeEventListener("change", this.#takeDraft);
      if (this.#state.unsaved) page.say(MESSAGES.kept);
    });
    page.unsaved.addEventListener("change", this.#takeDraft);
  }

  async open() {
    this.#draw({});
    document.body.append(this.#dialog);
    this.#dialog.showModal();
    const response = await this.#request();
    if (!response) return;
    const found = await response.json();
    this.#stored = found.text;
    this.#showStatus({ version: versionOf(response), status: read(found) });
    this.#field.value = found.text;
    this.#takeDraft();
    this.#field.focus();
  }

  /** @returns {Draft | undefined} */
  get #draft() {
    const { unsaved } = this.#page;
    const before = storage.get(BEFORE);
    storage.set(BEFORE, null);
    if (before && !unsaved.get(DRAFT)) unsaved.set(DRAFT, JSON.parse(before));
    return unsaved.get(DRAFT);
  }

  /** Shows the draft, which may come from a closed tab, unless the user has typed another text. */
  #takeDraft = () => {
    const { version, unsaved } = this.#state;
    const draft = version === undefined || unsaved ? undefined : this.#draft;
    if (!draft) return;
    this.#field.value = draft.text;
    if (draft.text !== this.#stored && draft.version !== version) this.#showStatus({ other: this.#stored, problem: MESSAGES.changed });
    this.write();
  };

  /** Stores the draft. */
  write() {
    const { value: text } = this.#field;
    const unsaved = text !== this.#stored;
    this.#page.unsaved.set(DRAFT, unsaved ? { text, version: this.#state.version } : null);
    this.#draw({ unsaved, ...(unsaved && { status: "" }) });
  }

  async save() {
    const headers = { "Content-Type": "application/json", "If-Match": this.#state.version ?? "" };
    const { value: text } = this.#field;
    const saved = await this.#request({ method: "PUT", headers, body: JSON.stringify({ text }) });
    if (!saved) return;
    this.#stored = text;
    this.#showStatus({ version: versionOf(saved), status: `${MESSAGES.saved} ${read(await saved.json())}` });
    this.write(); // the user may have typed more
  }

  discard() {
    this.#field.value = this.#stored;
    this.#showStatus({});
    this.write();
    this.#field.focus();
  }

  /** Shows the stored text next to the draft. */
  async #compare() {
    const now = await this.#request();
    if (!now) return;
    this.#stored = (await now.json()).text;
    this.#showStatus({ version: versionOf(now), other: this.#stored, problem: MESSAGES.changed });
    this.write();
  }

  /** @param {RequestInit} [change] */
  async #request(change) {
    const response = await fetchFromHere("memory", change).catch(() => null);
    if (response?.ok) return response;
    if (response?.status === 401) return this.#page.unauthorized();
    this.#showStatus({ problem: response ? await sentence(response) : TEXTS.unreachable });
    if (response?.status === 412) await this.#compare();
  }

  get #field() {
    return /** @type {HTMLTextAreaElement} */ (this.#dialog.querySelector("textarea"));
  }

  /** Replaces the status. @param {Partial<State>} now */
  #showStatus(now) {
    this.#draw({ status: "", problem: undefined, other: undefined, ...now });
  }

  /** @param {Partial<State>} now */
  #draw(now) {
    this.#state = { ...this.#state, ...now };
    render(content(this.#state, this), this.#dialog);
  }
}

/** @param {Response} response */
const versionOf = (response) => response.headers.get("ETag") ?? "";

/** @param {{lines: number, lines_read: number}} found */
const read = ({ lines, lines_read }) => (lines_read < lines ? MESSAGES.tooLong(lines_read, lines) : "");

/** @param {State} state @param {MemoryDialog} dialog */
const content = ({ version, unsaved, status, other, problem }, dialog) => html`
  <h2 id="memory-title">${MESSAGES.title}</h2>
  <p id="memory-about">${MESSAGES.about}</p>
  <textarea
    aria-labelledby="memory-title"
    aria-describedby="memory-about"
    rows="8"
    ?disabled=${version === undefined}
    @input=${() => dialog.write()}
  ></textarea>
  <p class="quiet" role="status" translate="no">${status || (unsaved ? MESSAGES.unsaved : "")}</p>
  ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
  ${other === undefined
    ? nothing
    : html`<label for="memory-other">${MESSAGES.other}</label><textarea id="memory-other" rows="3" readonly .value=${other}></textarea>`}
  <form method="dialog">
    ${unsaved ? html`<button type="button" class="button" @click=${() => dialog.discard()}>${MESSAGES.discard}</button>` : nothing}
    <button type="button" class="button primary" ?disabled=${version === undefined} @click=${() => dialog.save()}>${TEXTS.save}</button>
    <button type="submit" class="button">${TEXTS.close}</button>
  </form>
`;

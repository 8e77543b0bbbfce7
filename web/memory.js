// @ts-check
import { sentence } from "./chat/protocol.js";
import { storage } from "./chat/storage.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";

const SAID = TEXTS.memory;
const DRAFT = "todo.memory.draft";

/**
 * @typedef {object} State
 * @property {string} [version] of the text that the server has; none until it has said so
 * @property {boolean} [unsaved] whether something else is written
 * @property {string} [said] how much of it is read
 * @property {string} [other] what the text is by now, where it was changed elsewhere
 * @property {string} [problem]
 */

/** What was written and not saved, and the version that it changes. @typedef {{text: string, version: string}} Draft */

/**
 * Show the dialog in which a person writes what they want remembered. What they do not save is there again the next time.
 * @param {Page} page
 */
export const showMemory = (page) => new MemoryDialog(page).open();

/** @typedef {{say: (text: string) => void, unauthorized: () => void}} Page */

class MemoryDialog {
  #dialog = document.createElement("dialog");
  /** @type {State} */
  #state = {};
  /** The text that the server has. */
  #stored = "";
  #page;

  /** @param {Page} page */
  constructor(page) {
    this.#page = page;
    this.#dialog.className = "sheet memory";
    this.#dialog.setAttribute("aria-labelledby", "memory-title");
    this.#dialog.addEventListener("close", () => {
      this.#dialog.remove();
      if (this.#state.unsaved) page.say(SAID.kept);
    });
  }

  async open() {
    this.#draw({});
    document.body.append(this.#dialog);
    this.#dialog.showModal();
    const response = await this.#ask();
    if (!response) return;
    const found = await response.json();
    const version = versionOf(response);
    const draft = draftOf();
    this.#stored = found.text;
    this.#field.value = draft?.text ?? found.text;
    const outdated = draft && draft.text !== found.text && draft.version !== version;
    this.#tell({ version, ...(outdated ? { other: found.text, problem: SAID.changed } : { said: read(found) }) });
    this.write();
    this.#field.focus();
  }

  /** Keep what is written until it is saved. */
  write() {
    const { value: text } = this.#field;
    const unsaved = text !== this.#stored;
    storage.set(DRAFT, unsaved ? JSON.stringify({ text, version: this.#state.version }) : null);
    this.#draw({ unsaved, ...(unsaved && { said: "" }) });
  }

  async save() {
    const headers = { "Content-Type": "application/json", "If-Match": this.#state.version ?? "" };
    const { value: text } = this.#field;
    const saved = await this.#ask({ method: "PUT", headers, body: JSON.stringify({ text }) });
    if (!saved) return;
    this.#stored = text;
    this.#tell({ version: versionOf(saved), said: `${SAID.saved} ${read(await saved.json())}` });
    this.write(); // more may have been written meanwhile
  }

  discard() {
    this.#field.value = this.#stored;
    this.#tell({});
    this.write();
    this.#field.focus();
  }

  /** What is written here stays, beside what was written elsewhere. */
  async #compare() {
    const now = await this.#ask();
    if (!now) return;
    this.#stored = (await now.json()).text;
    this.#tell({ version: versionOf(now), other: this.#stored, problem: SAID.changed });
    this.write();
  }

  /** @param {RequestInit} [change] */
  async #ask(change) {
    const response = await fetch("/memory", change).catch(() => null);
    if (response?.ok) return response;
    if (response?.status === 401) return this.#page.unauthorized();
    this.#tell({ problem: response ? await sentence(response) : TEXTS.unreachable });
    if (response?.status === 412) await this.#compare();
  }

  get #field() {
    return /** @type {HTMLTextAreaElement} */ (this.#dialog.querySelector("textarea"));
  }

  /** Say this, and nothing of before. @param {Partial<State>} now */
  #tell(now) {
    this.#draw({ said: "", problem: undefined, other: undefined, ...now });
  }

  /** @param {Partial<State>} now */
  #draw(now) {
    this.#state = { ...this.#state, ...now };
    render(content(this.#state, this), this.#dialog);
  }
}

/** @returns {Draft | null} */
function draftOf() {
  try {
    return JSON.parse(storage.get(DRAFT) ?? "null");
  } catch {
    return null;
  }
}

/** @param {Response} response */
const versionOf = (response) => response.headers.get("ETag") ?? "";

/** @param {{lines: number, lines_read: number}} found */
const read = ({ lines, lines_read }) => (lines_read < lines ? SAID.tooLong(lines_read, lines) : "");

/** @param {State} state @param {MemoryDialog} dialog */
const content = ({ version, unsaved, said, other, problem }, dialog) => html`
  <h2 id="memory-title">${SAID.title}</h2>
  <p id="memory-about">${SAID.about}</p>
  <textarea
    aria-labelledby="memory-title"
    aria-describedby="memory-about"
    rows="8"
    ?disabled=${version === undefined}
    @input=${() => dialog.write()}
  ></textarea>
  <p class="quiet" role="status" translate="no">${said || (unsaved ? SAID.unsaved : "")}</p>
  ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
  ${other === undefined
    ? nothing
    : html`<label for="memory-other">${SAID.other}</label><textarea id="memory-other" rows="3" readonly .value=${other}></textarea>`}
  <form method="dialog">
    ${unsaved ? html`<button type="button" class="button" @click=${() => dialog.discard()}>${SAID.discard}</button>` : nothing}
    <button type="button" class="button primary" ?disabled=${version === undefined} @click=${() => dialog.save()}>${TEXTS.save}</button>
    <button type="submit" class="button">${TEXTS.close}</button>
  </form>
`;

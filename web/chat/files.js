// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { icon, iconButton } from "../icons.js";
import { fetchFromHere, user } from "../http.js";
import { removeBidiControls } from "../words.js";
import { TEXTS } from "../texts.js";
import { chatPath, ConnectionLost, HttpError } from "./protocol.js";
/** @import {Conversation} from "./conversation.js" */
/** @import {Ui} from "./ui.js" */

/** A file for the next message. `sent` is the uploaded share, 1 at the end. `lost`: it must be chosen again. @typedef {{name: string, size: number, sent: number, problem?: string, lost?: boolean, request?: XMLHttpRequest}} Chip */
/** A chip as it is stored. @typedef {Pick<Chip, "name" | "size" | "sent">} StoredChip */

/** Uploads files into conversations as soon as they are chosen. What is attached to an unsent message survives a reload. */
export class Files {
  /** @type {WeakMap<Conversation, Chip[]>} */
  #chips = new WeakMap();
  #ui;

  /** @param {Ui} ui */
  constructor(ui) {
    this.#ui = ui;
  }

  /** Shows again what was attached, as far as it is in the conversation's folder. */
  async restore() {
    const { conversation, chat } = this.#ui;
    /** @type {StoredChip[] | undefined} */
    const stored = chat.drafts.read("file", conversation.id);
    if (!stored || this.#chips.has(conversation)) return;
    this.#chips.set(conversation, stored.map((chip) => (chip.sent === 1 ? chip : lost(chip, TEXTS.files.cutOff))));
    this.#ui.redraw();
    const found = conversation.id && (await chat.api.json(`${chatPath(conversation.id)}/files`).catch(() => null));
    if (!found || found.more) return;
    /** @type {Map<string, number>} */
    const sizes = new Map(found.files.map((/** @type {{path: string, size: number}} */ { path, size }) => [path, size]));
    const isThere = (/** @type {Chip} */ { name, size }) => sizes.get(name) === size;
    const checked = this.#of(conversation).map((chip) => {
      if (chip.request) return chip; // chosen meanwhile
      if (isThere(chip)) return { name: chip.name, size: chip.size, sent: 1 };
      return chip.sent === 1 ? lost(chip, TEXTS.files.gone) : chip;
    });
    this.#keep(conversation, checked);
  }

  get #shown() {
    return this.#of(this.#ui.conversation);
  }

  /** @param {Conversation} conversation */
  #of(conversation) {
    return this.#chips.get(conversation) ?? [];
  }

  /** Whether a file is being uploaded. */
  get busy() {
    return this.#shown.some(({ sent, problem }) => sent < 1 && !problem);
  }

  /** Whether a file is uploaded. */
  get any() {
    return this.#shown.some(({ sent }) => sent === 1);
  }

  /** @param {File[]} files @param {number} largest in bytes */
  async add(files, largest) {
    const { conversation } = this.#ui;
    const chips = files.map((file) => {
      /** @type {Chip} */
      const chip = { name: file.name, size: file.size, sent: 0 };
      if (file.size > largest) chip.problem = TEXTS.files.tooLarge(TEXTS.files.size(largest));
      const before = this.#of(conversation);
      before.find(({ name }) => name === chip.name)?.request?.abort(); // the new file replaces it
      this.#keep(conversation, [...before.filter(({ name }) => name !== chip.name), chip]);
      return { chip, file };
    });
    const wanted = (/** @type {Chip} */ chip) => !chip.problem && this.#of(conversation).includes(chip);
    for (const { chip, file } of chips) {
      if (!wanted(chip)) continue;
      try {
        await conversation.begin(file.name);
        if (!wanted(chip)) continue;
        if (!(await this.#send(chip, file, conversation))) continue;
        chip.sent = 1;
        this.#store(conversation);
      } catch (error) {
        if (error instanceof HttpError) this.#ui.reportError(error);
        chip.problem = error instanceof Error ? error.message : String(error);
        chip.lost = error instanceof ConnectionLost;
        this.#store(conversation);
      }
      this.#ui.redraw();
    }
  }

  /** Returns the text about the uploaded files and removes them from the composer. */
  take() {
    const there = this.#shown.filter(({ sent }) => sent === 1);
    this.#keep(this.#ui.conversation, []);
    return there.length ? `\n\n${TEXTS.files.said(there.map(({ name, size }) => `${name} (${TEXTS.files.size(size)})`))}` : "";
  }

  /** @param {Conversation} conversation @param {Chip[]} chips */
  #keep(conversation, chips) {
    this.#chips.set(conversation, chips);
    this.#store(conversation);
    this.#ui.redraw();
  }

  /** Stores the chips, except those of files that cannot be sent. @param {Conversation} conversation */
  #store(conversation) {
    const stored = this.#of(conversation).filter(({ problem, lost }) => !problem || lost).map(({ name, size, sent }) => ({ name, size, sent }));
    this.#ui.chat.drafts.write("file", conversation.id, stored.length ? stored : undefined);
  }

  /** Returns whether the file was uploaded. Uses XMLHttpRequest, because fetch reports no progress. @param {Chip} chip @param {File} file @param {Conversation} conversation */
  #send(chip, file, conversation) {
    const request = (chip.request = new XMLHttpRequest());
    request.open("PUT", place(conversation, chip));
    for (const [name, value] of window.early.headersOf(user.id)) request.setRequestHeader(name, value);
    request.responseType = "json";
    request.upload.onprogress = ({ loaded, total }) => {
      chip.sent = Math.min(loaded / total, 0.99); // the response is the rest
      this.#ui.redraw();
    };
    return /** @type {Promise<boolean>} */ (
      new Promise((resolve, reject) => {
        request.onload = () => {
          const { status, response } = request;
          if (status < 300) resolve(true);
          else reject(new HttpError(status, typeof response?.error === "string" ? response.error : TEXTS.talk.status(status)));
        };
        request.onerror = () => reject(new ConnectionLost());
        request.onabort = () => resolve(false); // the file was removed, or the page is left
        request.send(file);
      })
    );
  }

  view() {
    const { conversation } = this.#ui;
    const chips = this.#shown;
    if (chips.length === 0) return nothing;
    return html`
      <ul class="chips" translate="no" aria-label=${TEXTS.files.title}>
        ${chips.map((chip) => {
          const { name, size, sent, problem, lost, request } = chip;
          const leave = () => {
            request?.abort();
            if (sent === 1) void fetchFromHere(place(conversation, chip), { method: "DELETE" }).catch(() => {}); // it is stored already
            this.#keep(conversation, chips.filter((other) => other !== chip));
          };
          return html`<li class="going-along ${problem ? "over" : ""}">
            ${problem ? icon("warning") : nothing}
            <span><span dir="auto">${name}</span>, ${TEXTS.files.size(size)}${problem ? ":" : nothing}</span>
            ${problem ? html`<span role="alert" dir="auto">${problem}</span>` : nothing}
            ${lost ? html`<button type="button" class="text-button" @click=${() => this.#ui.chooseFiles()}>${TEXTS.files.again}</button>` : nothing}
            ${sent < 1 && !problem ? html`<progress aria-label=${removeBidiControls(name)} value=${sent}></progress>` : nothing}
            ${iconButton("close", TEXTS.files.leave(name), leave)}
          </li>`;
        })}
      </ul>
    `;
  }
}

/** @param {StoredChip} chip @param {string} problem @returns {Chip} */
const lost = ({ name, size }, problem) => ({ name, size, sent: 0, problem, lost: true });

/** @param {Conversation} conversation @param {Chip} chip */
const place = ({ id }, { name }) => `chats/${encodeURIComponent(id ?? "")}/files/${encodeURIComponent(name)}`;

// @ts-check
import { drafts, storage } from "./storage.js";
/** @import {ChatKitOptions} from "@openai/chatkit" */
/** @import {Chat} from "./chat.js" */
/** @import {Retry} from "./conversation.js" */
/** @import {Scroll} from "./scroll.js" */
/** @import {Action, Item, Thread} from "./types" */

const COVERS = matchMedia("(max-width: 719px)"); // where the list of conversations covers the rest, as in style.css
const PRECISE = matchMedia("(pointer: fine)"); // where focus does not open a keyboard on the screen
const COPIED = 1500;

/**
 * What the element lends to its views.
 * @typedef {object} Parts
 * @property {HTMLElement} root
 * @property {Chat} chat
 * @property {() => ChatKitOptions} options
 * @property {number} messageChars
 * @property {() => void} draw
 * @property {(text: string) => void} announce
 */

/** What a person sees besides the conversations themselves, and all that they can do. */
export class Ui {
  historyOpen = storage.get("todo.history") === "open" && !COVERS.matches;
  /** The conversation whose title is being written. @type {string | null} */
  renaming = null;
  /** The conversation that the dialog asks about. @type {Thread | null} */
  deleting = null;
  /** The item that was copied just now. @type {string | null} */
  copied = null;
  /** Lists that show everything. @type {Set<string>} */
  expanded = new Set();
  /** @type {Scroll | null} */
  scroll = null;
  #parts;

  /** @param {Parts} parts */
  constructor(parts) {
    this.#parts = parts;
    this.chat = parts.chat;
    this.messageChars = parts.messageChars;
  }

  get options() {
    return this.#parts.options();
  }

  get conversation() {
    return this.chat.conversation;
  }

  get draft() {
    return drafts.get(this.conversation.id);
  }

  /** Whether the list of conversations covers everything else. */
  get covered() {
    return this.historyOpen && COVERS.matches;
  }

  /** Whether a message could be sent now. */
  get ready() {
    const { streaming, waiting, loading, items } = this.conversation;
    return !streaming && !waiting && !(loading && items.length === 0) && this.chat.connection.state !== "lost";
  }

  /** Whether what is written could be sent now. */
  get sendable() {
    return this.ready && this.draft.trim() !== "" && this.draft.length <= this.messageChars;
  }

  /** @param {string} text */
  write(text) {
    drafts.set(this.conversation.id, text);
    this.#parts.draw();
  }

  async send() {
    const text = this.draft.trim();
    if (!this.sendable) return;
    drafts.set(this.conversation.id, "");
    await this.deliver(text);
  }

  /** @param {string} text */
  async deliver(text) {
    if (!this.ready) return;
    this.#followEnd();
    const sent = this.chat.send(text);
    this.focusComposer();
    await sent;
  }

  stop() {
    this.conversation.stop();
    this.focusComposer();
  }

  /** @param {Retry} retry */
  async again(retry) {
    if (retry === "send") await this.send();
    else if (retry === "load") await this.chat.load();
    else if (this.ready) await this.chat.retry();
  }

  dismiss() {
    this.chat.dismiss();
    this.focusComposer();
  }

  /** @param {Action} action @param {Item} item */
  act(action, { id, widget }) {
    if (action.handler !== "client") return this.chat.act(action, id);
    return this.options.widgets?.onAction?.(action, { id, widget: /** @type {any} */ (widget) });
  }

  /** @param {Item} item */
  expand({ id }) {
    this.expanded.add(id);
    this.#parts.draw();
  }

  /** @param {Item} item @param {string} text */
  async copy({ id }, text) {
    await navigator.clipboard.writeText(text);
    this.copied = id;
    this.#parts.announce("Copied.");
    this.#parts.draw();
    setTimeout(() => {
      this.copied = null;
      this.#parts.draw();
    }, COPIED);
  }

  async older() {
    const { activeElement } = document;
    await this.chat.loadOlder();
    this.#parts.draw();
    if (activeElement && !activeElement.isConnected) this.#focus(".log"); // the button has gone
  }

  newest() {
    this.scroll?.toEnd(true);
  }

  /** @param {string | null} id */
  async open(id) {
    this.#followEnd();
    if (this.covered) this.showHistory(false);
    const opened = this.chat.open(id);
    this.#parts.draw();
    if (PRECISE.matches) this.focusComposer();
    await opened;
  }

  /** @param {boolean} open */
  showHistory(open) {
    this.historyOpen = open;
    storage.set("todo.history", open ? "open" : null);
    if (open) void this.chat.loadHistory();
    this.#parts.draw();
    if (this.covered) this.#focus("nav button");
    else if (!open) this.#focus(".bar [aria-expanded]");
  }

  /** @param {Thread} thread */
  startRename(thread) {
    this.renaming = thread.id;
    this.#parts.draw();
    /** @type {HTMLInputElement | null} */ (this.#parts.root.querySelector("nav input"))?.select();
  }

  /** @param {Thread} thread @param {string} title empty or the old one: leave it as it is */
  rename(thread, title) {
    if (title && title !== thread.title) void this.chat.rename(thread, title);
    this.renaming = null;
    this.#parts.draw();
    this.#focus(`nav [data-id="${thread.id}"] .title`);
  }

  /** @param {Thread} thread */
  askToDelete(thread) {
    this.deleting = thread;
    this.#parts.draw();
    this.#parts.root.querySelector("dialog")?.showModal();
  }

  async delete() {
    if (this.deleting) await this.chat.remove(this.deleting);
    this.#parts.draw();
    this.#focus("nav .title") || this.#focus(".bar button");
  }

  focusComposer() {
    this.#focus("textarea");
  }

  /** Leave what is open, one thing at a time. */
  escape() {
    if (this.#parts.root.querySelector("dialog[open]")) return;
    if (this.covered) this.showHistory(false);
    else if (this.conversation.streaming) this.stop();
  }

  #followEnd() {
    if (this.scroll) this.scroll.atEnd = true;
  }

  /** @param {string} selector */
  #focus(selector) {
    const element = /** @type {HTMLElement | null} */ (this.#parts.root.querySelector(selector));
    element?.focus();
    return element !== null;
  }
}

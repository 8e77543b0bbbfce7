// @ts-check
import { TEXTS } from "../texts.js";
import { codeToCopy } from "./code.js";
import { drafts, storage } from "./storage.js";
import { lengthOf, MAX_TAGS, textOf, nameTask } from "./tags.js";
/** @import {Chat} from "./chat.js" */
/** @import {TodoChat} from "./element.js" */
/** @import {Files} from "./files.js" */
/** @import {Scroll} from "./scroll.js" */
/** @import {TagMenu} from "./tag-menu.js" */
/** @import {Action, Item, Retry, Thread, Unread} from "./types" */

const PRECISE = matchMedia("(pointer: fine)"); // where focus opens no on-screen keyboard
const COPIED = 1500; // ms
const PAUSE = 150; // ms after the last letter

/** The state of the chat besides its conversations, and the user's actions. */
export class Ui {
  historyOpen;
  /** The conversation that is being renamed. @type {string | null} */
  renaming = null;
  /** The message that is being edited. @type {string | null} */
  editing = null;
  /** Unsent edits of messages, by their ids. @type {Map<string, string>} */
  edits = new Map();
  /** The conversation that the dialog asks to delete. @type {Thread | null} */
  deleting = null;
  /** The item that was just copied. @type {string | null} */
  copied = null;
  /** Lists that show all rows. @type {Set<string>} */
  expanded = new Set();
  /** @type {Scroll | null} */
  scroll = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #searching;
  #element;
  redraw = () => this.#element.changed();
  /** The menu after an "@", once it is needed. @type {TagMenu | null} */
  menu = null;
  /** The chosen files, once there are any. @type {Files | null} */
  files = null;
  /** The views of the list of conversations, once it was opened. @type {typeof import("./history-view.js") | null} */
  historyViews = null;

  /** @param {TodoChat} element @param {Chat} chat */
  constructor(element, chat) {
    this.#element = element;
    this.chat = chat;
    this.messageChars = element.messageChars;
    /** Whether a text was too long to be added to the draft. */
    this.refused = false;
    this.historyOpen = storage.get("todo.history") === "open" && !element.narrow;
    if (this.historyOpen) void this.#loadHistoryViews().then(this.redraw);
  }

  get options() {
    return this.#element.options;
  }

  get conversation() {
    return this.chat.conversation;
  }

  get draft() {
    return drafts.get(this.conversation.id);
  }

  /** Whether the list of conversations covers everything else. */
  get covered() {
    return this.historyOpen && this.#element.narrow;
  }

  /** Whether a message could be sent now. */
  get ready() {
    const { id, streaming, waiting, loading, items } = this.conversation;
    if (streaming || waiting || (loading && items.length === 0)) return false;
    return this.chat.connection.state !== "lost" && !(id && this.chat.tabs.answering.has(id));
  }

  /** Whether the draft could be sent now. */
  get sendable() {
    return this.ready && this.#hasContent;
  }

  /** Whether the draft could wait for the running answer. */
  get queueable() {
    const { id, streaming, waiting } = this.conversation;
    return streaming && !waiting && id !== null && this.chat.connection.state !== "lost" && this.#hasContent;
  }

  get #hasContent() {
    const { draft, selected } = this;
    return Boolean(draft.trim() || this.files?.any) && !this.files?.busy && lengthOf(draft) <= this.messageChars && selected.length <= MAX_TAGS;
  }

  /** Offers tasks if the caret is after an "@". @param {HTMLTextAreaElement} field */
  async offer(field) {
    if (!this.menu && !field.value.includes("@")) return;
    const module = this.menu ? null : await import("./tag-menu.js").catch(() => null);
    if (module) this.menu ??= new module.TagMenu(this);
    this.menu?.look(field);
  }

  /** The tasks that the next message mentions. */
  get selected() {
    return this.#element.selected;
  }

  /** Asks the page to end the selection. */
  unselect() {
    this.#element.emit("todo.unselect");
  }

  /** The field of the composer. @returns {HTMLTextAreaElement | null} */
  get composer() {
    return this.#element.querySelector(".composer textarea");
  }

  /** The draft with the selected tasks below it. */
  get #message() {
    let text = this.draft.trim() || TEXTS.files.look; // only files are sent
    this.selected.forEach(({ id, title }, at) => (text += `${at ? " " : "\n\n"}${nameTask(String(id), title, text)}`));
    return text + (this.files?.take() ?? "");
  }

  /** The largest file in bytes; undefined without agents. */
  get largestFile() {
    const { agents } = this.#element;
    return agents?.offered ? agents.fileBytes : undefined;
  }

  /** Handles files that are dragged over the conversation or dropped. @param {DragEvent} event */
  drag = (event) => {
    const { type, dataTransfer } = event;
    if (!this.largestFile || !dataTransfer?.types.includes("Files")) return;
    event.preventDefault(); // prevents that the browser opens them
    this.#element.toggleAttribute("data-dropping", type === "dragover");
    if (type === "drop") void this.attach([...dataTransfer.files]);
  };

  chooseFiles() {
    /** @type {HTMLInputElement | null} */ (this.#element.querySelector("input[type=file]"))?.click();
  }

  /** Uploads files into the conversation. @param {File[]} files */
  async attach(files) {
    const module = await import("./files.js").catch(() => null);
    if (!module || !this.largestFile) return;
    this.files ??= new module.Files(this);
    this.focusComposer();
    await this.files.add(files, this.largestFile);
  }

  /** Reports an error to the page. @param {Error} error */
  reportError(error) {
    this.#element.emit("chatkit.error", { error });
  }

  /** @param {string} text */
  write(text) {
    drafts.set(this.conversation.id, text);
    this.#element.draw();
  }

  /** Says whether a text is too long to be added to the draft. @param {boolean} refused */
  refuse(refused) {
    if (refused) this.#element.announce(TEXTS.talk.tooLong(this.messageChars));
    if (refused === this.refused) return;
    this.refused = refused;
    this.redraw();
  }

  /** Puts the last message into the empty composer. */
  recall() {
    const { lastQuestion } = this.conversation;
    if (this.draft || !lastQuestion) return false;
    this.write(textOf(lastQuestion));
    return true;
  }

  async send() {
    const { queueable } = this;
    if (!this.sendable && !queueable) return;
    const text = this.#message;
    if (this.selected.length > 0) this.unselect();
    this.menu?.close();
    drafts.set(this.conversation.id, "");
    this.focusComposer();
    if (!queueable) return this.deliver(text);
    this.#followEnd();
    await this.chat.queue(text);
  }

  /** @param {string} text @param {string} [unsent] the message of the queue that it is @param {object} [metadata] of one that begins a conversation */
  async deliver(text, unsent, metadata) {
    if (!this.ready) return;
    this.#followEnd();
    await this.chat.send(text, unsent, metadata);
  }

  /** @param {Unread} message */
  sendAgain({ id, text }) {
    return this.deliver(text, id);
  }

  /** @param {Retry} retry */
  async tryAgain(retry) {
    if (retry === "send") await this.send();
    else if (retry === "load") await this.chat.load();
    else if (this.ready) await this.chat.retry();
  }

  /** @param {Action} action @param {Item} item */
  act(action, { id, widget }) {
    if (action.handler === "client") return this.options.widgets?.onAction?.(action, { id, widget: /** @type {any} */ (widget) });
    const done = this.chat.act(action, id);
    this.#element.draw(); // draws the new state first, so that a reset is a change
    return done;
  }

  /** Decides an approval card. @param {Action} action @param {Item} item */
  async decide(action, { id }) {
    if (!this.ready) return;
    this.#followEnd();
    await this.chat.decide(action, id);
  }

  /** @param {Item} item */
  expand({ id }) {
    this.expanded.add(id);
    this.scroll?.hold();
    this.#element.draw();
  }

  /** Keeps the scroll position while something is opened or closed. */
  unfold() {
    this.scroll?.hold();
    this.redraw();
  }

  /** @param {Item} item @param {string} text */
  async copy({ id }, text) {
    if (!(await this.#toClipboard(text))) return;
    this.#copied(id);
    setTimeout(() => this.copied === id && this.#copied(null), COPIED);
  }

  /** @param {Event} event anywhere in the log */
  async onLogClick(event) {
    if (/** @type {Element} */ (event.target).closest("summary")) this.unfold();
    const code = codeToCopy(event);
    if (!code || !(await this.#toClipboard(code.code))) return;
    code.button.toggleAttribute("data-copied", true);
    setTimeout(() => code.button.toggleAttribute("data-copied", false), COPIED);
  }

  /** @param {string} text */
  async #toClipboard(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      this.chat.fail(TEXTS.talk.notCopied);
      return false;
    }
    this.#element.announce(TEXTS.copied);
    return true;
  }

  /** @param {string | null} id */
  async open(id) {
    this.#followEnd();
    if (this.covered) this.showHistory(false);
    const opened = this.chat.open(id);
    this.#element.draw();
    if (PRECISE.matches) this.focusComposer();
    await opened;
  }

  /** @param {string | null} id */
  #copied(id) {
    this.copied = id;
    this.#element.draw();
  }

  async #loadHistoryViews() {
    this.historyViews ??= await import("./history-view.js").catch(() => null);
    return this.historyViews !== null;
  }

  /** @param {boolean} open */
  async showHistory(open) {
    if (open && !this.historyViews && !(await this.#loadHistoryViews())) return;
    clearTimeout(this.#searching);
    this.historyOpen = open;
    storage.set("todo.history", open ? "open" : null);
    if (open) void this.chat.loadHistory();
    else if (this.chat.history.titled) void this.chat.searchHistory("");
    const left = !open && this.#element.querySelector("nav")?.contains(document.activeElement);
    this.#element.draw();
    if (this.covered) this.#focus("nav button");
    else if (left) this.#focus(".bar [aria-expanded]");
  }

  /** @param {string} text */
  searchHistory(text) {
    clearTimeout(this.#searching);
    this.#searching = setTimeout(() => void this.chat.searchHistory(text.trim()), PAUSE);
  }

  /** @param {Thread} thread */
  startRename(thread) {
    this.renaming = thread.id;
    this.#element.draw();
    /** @type {HTMLInputElement | null} */ (this.#element.querySelector("nav form input"))?.select();
  }

  /** @param {Thread} thread @param {string} title empty or the old one: leave it as it is */
  rename(thread, title) {
    if (this.renaming !== thread.id) return;
    if (title && title !== thread.title) void this.chat.rename(thread, title);
    const left = this.#element.querySelector("nav form")?.contains(document.activeElement);
    this.renaming = null;
    this.#element.draw();
    if (left) this.#focus(`nav [data-id="${thread.id}"] .title`);
  }

  /** @param {Thread} thread */
  askToDelete(thread) {
    this.deleting = thread;
    this.#element.draw();
    this.#element.querySelector("dialog")?.showModal();
  }

  /** @param {Item} item */
  startEdit({ id }) {
    this.editing = id;
    this.scroll?.hold();
    this.#element.draw();
    this.#focus(".editing textarea");
  }

  /** Ends editing without saving. @param {Item} item @param {boolean} [keep] keeps the unsaved text for the next time */
  endEdit({ id }, keep = false) {
    this.editing = null;
    if (!keep) this.edits.delete(id);
    this.#element.draw();
    this.#focus(`[data-of="${id}"] [data-edits]`);
  }

  /** @param {Item} item @param {string} text */
  async saveEdit(item, text) {
    if (!text || !this.ready) return;
    this.editing = null;
    this.edits.delete(item.id);
    this.#followEnd();
    const edited = this.chat.edit(item, text);
    this.#element.draw();
    this.focusComposer();
    await edited;
  }

  /** Shows another version of a message. @param {Item} item @param {"previous" | "next"} side */
  async showVersion({ id, versions }, side) {
    const interaction = versions?.[side];
    if (!interaction || !this.ready) return;
    const place = this.conversation.items.findIndex((item) => item.id === id);
    this.scroll?.hold();
    if (!(await this.chat.showVersion(interaction))) return;
    this.#element.draw();
    const shown = this.conversation.items[place];
    if (!shown?.versions) return;
    this.#element.announce(TEXTS.versions.number(shown.versions.number, shown.versions.count));
    const arrows = `[data-of="${shown.id}"] [data-side]:enabled`;
    this.#focus(`${arrows}[data-side="${side}"]`) || this.#focus(arrows);
  }

  focusComposer() {
    this.#focus(".composer textarea");
  }

  /** Moves the focus when its element was removed. @param {boolean} inHistory @param {Element | null} [place] a widget's */
  takeFocus(inHistory, place) {
    const inside = place?.querySelector("button") ?? place?.querySelector("input");
    const target = /** @type {HTMLElement | null | undefined} */ (inside ?? (place?.matches("[tabindex]") ? place : null));
    if (target?.isConnected) target.focus({ preventScroll: true });
    else if (inHistory && this.historyOpen) this.#focus("nav .title") || this.#focus("nav button");
    else (PRECISE.matches && this.#focus(".composer textarea")) || this.#focus(".log");
  }

  /** Closes what is open, one thing at a time. */
  escape() {
    if (this.#element.querySelector("dialog[open]")) return;
    if (this.conversation.streaming && !this.covered) this.conversation.stop();
    else if (this.historyOpen) this.showHistory(false);
  }

  #followEnd() {
    this.scroll?.follow();
  }

  /** @param {string} selector */
  #focus(selector) {
    const element = /** @type {HTMLElement | null} */ (this.#element.querySelector(selector));
    element?.focus();
    return element !== null;
  }
}

// @ts-check
import { openedModule } from "../http.js";
import { TEXTS } from "../texts.js";
import { codeToCopy } from "./code.js";
import { loadLog } from "./load-log.js";
import { storage } from "./storage.js";
import { lengthOf, MAX_TAGS, textOf, nameTask } from "./tags.js";
/** @import {Conversation} from "./conversation.js" */
/** @import {More} from "./outgoing.js" */
/** @import {Chat} from "./chat.js" */
/** @import {TodoChat} from "./element.js" */
/** @import {Files} from "./files.js" */
/** @import {Scroll} from "./scroll.js" */
/** @import {TagMenu} from "./tag-menu.js" */
/** @import {Action, Item, Retry, Thread, Unread} from "./types" */

const loadFiles = openedModule(() => import("./files.js"));
const loadHistoryViews = openedModule(() => import("./history-view.js"));

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
  /** The conversation that the dialog asks to delete. @type {Thread | null} */
  deleting = null;
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
    this.messageChars = element.options.messageChars;
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

  get drafts() {
    return this.chat.drafts;
  }

  get draft() {
    return this.drafts.get(this.conversation.id);
  }

  /** Whether the list of conversations covers everything else. */
  get covered() {
    return this.historyOpen && this.#element.narrow;
  }

  /** Whether a message could be sent now. */
  get ready() {
    const { streaming, waiting } = this.conversation;
    return !streaming && !waiting && this.chat.connection.state !== "lost" && !this.#isLocked;
  }

  /** Whether a message is accepted now, which may be sent later. */
  get accepts() {
    return this.conversation.streaming || this.chat.connection.state === "lost" || !this.#isLocked;
  }

  /** Whether the conversation is being loaded for the first time, or answered in another tab. */
  get #isLocked() {
    return this.conversation.isUnknown || this.chat.tabs.answering.has(this.conversation.id);
  }

  /** Whether the draft can be sent. */
  get sendable() {
    return this.accepts && this.#hasContent;
  }

  /** Whether the draft would wait for the running answer. */
  get queueable() {
    return this.conversation.streaming && this.sendable;
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
    const { agents } = this.options;
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
    const loaded = await this.#loadFiles();
    if (!loaded || !this.largestFile) return;
    this.focusComposer();
    await loaded.add(files, this.largestFile);
  }

  async #loadFiles() {
    const module = this.files ? null : await loadFiles();
    if (module) this.files ??= new module.Files(this);
    return this.files;
  }

  /** Shows what was attached to the unsent message before the page was closed. */
  async #restoreFiles() {
    if (this.drafts.read("file", this.conversation.id)) await (await this.#loadFiles())?.restore();
  }

  /** Reads again what is not saved. */
  restore() {
    this.renaming ??= this.drafts.all("rename").at(-1)?.[0] ?? null;
    this.editing ??= this.drafts.all("edit-message").findLast(([, { open }]) => open)?.[0] ?? null;
    void this.#restoreFiles();
  }

  /** Reports an error to the page. @param {Error} error */
  reportError(error) {
    this.#element.emit("chatkit.error", { error });
  }

  /** @param {string} text */
  write(text) {
    this.drafts.set(this.conversation.id, text);
    void loadLog(); // loads early what draws the answer
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
    if (!this.sendable) return;
    const text = this.#message;
    if (this.selected.length > 0) this.unselect();
    this.menu?.close();
    this.drafts.set(this.conversation.id, "");
    this.focusComposer();
    await this.deliver(text);
  }

  /** @param {string} text @param {More} [more] */
  async deliver(text, more) {
    if (!this.accepts) return;
    this.scroll?.follow();
    await this.chat.send(text, more);
    this.#forgetReasons(); // a message rejects what was asked before
  }

  /** @param {Unread} message */
  sendAgain(message) {
    this.scroll?.follow();
    return this.chat.sendUnread(message);
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
    this.scroll?.follow();
    await this.chat.decide(action, id);
    this.#forgetReasons();
  }

  /** Forgets the reasons in cards that ask no more. */
  #forgetReasons() {
    for (const [field] of this.drafts.all("reason")) {
      const card = this.conversation.items.find(({ id }) => field.startsWith(`${id}/`));
      if (card && !card.widget?.confirm) this.drafts.write("reason", field, "");
    }
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

  /** @param {Event} event anywhere in the log */
  onLogClick(event) {
    if (/** @type {Element} */ (event.target).closest("summary")) this.unfold();
    const code = codeToCopy(event);
    if (code) void this.copy(code.button, code.code);
  }

  /** Copies a text, and says so in the clicked button. @param {Element} button @param {string} text */
  async copy(button, text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      return this.chat.fail(TEXTS.talk.notCopied);
    }
    this.#element.announce(TEXTS.copied);
    button.toggleAttribute("data-copied", true);
    setTimeout(() => button.toggleAttribute("data-copied", false), COPIED);
  }

  /** Opens the first conversation. @param {string | null} id @param {boolean} focus whether its field gets the focus */
  begin(id, focus) {
    const { activeElement } = document;
    const isFree = !activeElement || activeElement === document.body; // the user may have begun in the list
    return this.#open(this.chat.begin(id), focus && isFree);
  }

  /** @param {string | null} id */
  async open(id) {
    if (this.covered) this.showHistory(false);
    const writesElsewhere = this.#isWriting && !this.#element.contains(document.activeElement);
    await this.#open(this.chat.open(id), !writesElsewhere);
  }

  /** Shows a conversation that has begun and whose messages are not sent. @param {Conversation} conversation */
  async show(conversation) {
    if (this.covered) this.showHistory(false);
    this.chat.show(conversation);
    await this.#open(Promise.resolve(), true);
  }

  /** @param {Promise<void>} opened @param {boolean} focus whether the message field gets the focus */
  async #open(opened, focus) {
    this.scroll?.follow();
    this.#element.draw();
    if (focus && PRECISE.matches) this.focusComposer();
    this.restore();
    await opened;
    this.#forgetReasons();
  }

  async #loadHistoryViews() {
    this.historyViews = await loadHistoryViews();
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
    if (this.renaming) this.drafts.write("rename", this.renaming, "");
    this.renaming = thread.id;
    this.#element.draw();
    /** @type {HTMLInputElement | null} */ (this.#element.querySelector("nav form input"))?.select();
  }

  /** @param {Thread} thread @param {string} title empty or the old one: leave it as it is */
  rename(thread, title) {
    if (this.renaming !== thread.id) return;
    const forget = () => this.drafts.write("rename", thread.id, "");
    if (title && title !== thread.title) void this.chat.rename(thread, title).then((done) => done && forget());
    else forget();
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
  startEdit(item) {
    const { id } = item;
    if (this.editing) this.#closeEdit(this.editing);
    this.editing = id;
    this.writeEdit(item, this.editOf(item) ?? textOf(item));
    this.scroll?.hold();
    this.#element.draw();
    this.#focus(".editing textarea");
  }

  /** Ends editing without saving. @param {Item} item @param {boolean} [keep] keeps the unsaved text for the next time */
  endEdit({ id }, keep = false) {
    this.editing = null;
    if (keep) this.#closeEdit(id);
    else this.drafts.write("edit-message", id, undefined);
    this.#element.draw();
    this.#focus(`[data-of="${id}"] [data-part=edit]`);
  }

  /** Keeps the text of an edit, whose form is closed. @param {string} id */
  #closeEdit(id) {
    const edit = this.drafts.read("edit-message", id);
    if (edit) this.drafts.write("edit-message", id, { ...edit, open: false });
  }

  /** Returns the text of a message as far as it is edited. @param {Item} item @returns {string | undefined} */
  editOf({ id }) {
    return this.drafts.read("edit-message", id)?.text;
  }

  /** @param {Item} item @param {string} text */
  writeEdit(item, text) {
    this.drafts.write("edit-message", item.id, text === textOf(item) ? undefined : { text, open: true });
  }

  /** @param {Item} item @param {string} text */
  async saveEdit(item, text) {
    if (!text || !this.ready) return;
    this.editing = null;
    this.drafts.write("edit-message", item.id, undefined);
    this.scroll?.follow();
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
    const arrows = `[data-of="${shown.id}"] .versions :enabled`;
    this.#focus(`${arrows}[data-part="${side}"]`) || this.#focus(arrows);
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

  /** Whether the user is writing in a text field. */
  get #isWriting() {
    const focused = /** @type {HTMLInputElement | null} */ (document.activeElement);
    return Boolean(focused?.matches("textarea, input:not([type=checkbox])") && focused.value);
  }

  /** Closes what is open, one thing at a time. While the user writes, it stops no answer. */
  escape() {
    if (this.#element.querySelector("dialog[open]")) return;
    if (this.conversation.streaming && this.#isWriting) return;
    if (this.conversation.streaming && !this.covered) this.conversation.stop();
    else if (this.historyOpen) this.showHistory(false);
  }

  /** @param {string} selector */
  #focus(selector) {
    const element = /** @type {HTMLElement | null} */ (this.#element.querySelector(selector));
    element?.focus();
    return element !== null;
  }
}

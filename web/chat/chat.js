// @ts-check
import { TEXTS } from "../texts.js";
import { Connection } from "./connection.js";
import { Conversation } from "./conversation.js";
import { History } from "./history.js";
import { SLOW } from "./slow-requests.js";
import { Api, ConnectionLost, HttpError } from "./protocol.js";
import { drafts } from "./storage.js";
import { Tabs } from "./tabs.js";
/** @import {TodoChat} from "./element.js" */
/** @import {Action, Feedback, Item, Thread, Unread} from "./types" */

const HISTORY_PAUSE = 3000; // ms
/** Loads the code that renders and announces messages. */
const loadLog = () => import("./log.js").catch(() => null);
const TITLE_PAUSES = [2000, 10000]; // ms after a first answer, when the title is loaded

/** The open conversation, those with a running answer in the background, the list, and the other tabs. */
export class Chat {
  /** A sentence to show. @type {string | null} */
  notice = null;
  /** Busy conversations that are not shown. @type {Conversation[]} */
  #background = [];
  #closed = new AbortController();
  /** Loads the list while answers run in other places. @type {ReturnType<typeof setTimeout> | undefined} */
  #historyTimer;
  #owner;

  /**
   * @param {{url: string, fetch?: typeof fetch}} options
   * @param {TodoChat} owner
   */
  constructor(options, owner) {
    this.#owner = owner;
    this.api = new Api(options, (isNews) => {
      if (isNews) owner.announce(SLOW);
      owner.changed();
    });
    this.history = new History(this.api);
    this.connection = new Connection(() => this.#recover(), () => this.#connectionChanged());
    this.conversation = this.#createConversation(null);
    this.tabs = new Tabs((thread, ended) => this.#tabChanged(thread, ended));
    const { signal } = this.#closed;
    document.addEventListener("visibilitychange", () => this.#refresh(), { signal });
    addEventListener("pagehide", () => this.tabs.leave(), { signal });
  }

  close() {
    this.#closed.abort();
    clearTimeout(this.#historyTimer);
    for (const conversation of this.#all) conversation.close();
    this.connection.close();
    this.tabs.close();
  }

  /** @param {string | null} id null: a new conversation */
  async open(id) {
    const { conversation: left } = this;
    if (id !== null && id === left.id) return;
    const running = this.#background.find((other) => other.id === id && id !== null && other.busy);
    const others = [...this.#background, left].filter((other) => other !== running);
    this.#background = others.filter(({ busy }) => busy);
    for (const other of others) if (!other.busy) other.close(); // a loading one would follow its answer
    this.conversation = running ?? this.#createConversation(id);
    this.notice = null;
    this.#owner.emit("chatkit.thread.change", { threadId: id });
    this.#owner.changed();
    if (id === null || running) return;
    this.#owner.emit("chatkit.thread.load.start", { threadId: id });
    await this.load();
    this.#owner.emit("chatkit.thread.load.end", { threadId: id });
  }

  load() {
    const { conversation } = this;
    return conversation.id ? this.#guard(conversation.load(), conversation, "load") : Promise.resolve();
  }

  loadOlder() {
    return this.#guard(this.conversation.loadOlder());
  }

  /** @param {string} text @param {string} [unsent] the message of the queue that it is @param {object} [metadata] of one that begins a conversation */
  async send(text, unsent, metadata) {
    this.notice = null;
    await this.#guard(this.conversation.send(text, unsent, metadata));
  }

  /** Sends a message that is answered after the running answer. @param {string} text */
  async queue(text) {
    const { conversation } = this;
    if (conversation.id === null) return;
    this.#owner.announce(TEXTS.talk.queued);
    await this.#guard(conversation.queue.add(text, conversation.id), conversation);
  }

  /** @param {Unread} message */
  sendNow(message) {
    const { conversation } = this;
    return conversation.id && this.#guard(conversation.queue.sendNow(message, conversation.id), conversation);
  }

  /** @param {Unread} message */
  unqueue({ id }) {
    const { conversation } = this;
    return conversation.id && this.#guard(conversation.queue.remove(id, conversation.id), conversation);
  }

  retry() {
    return this.#guard(this.conversation.retry());
  }

  /** @param {Item} item @param {string} text */
  edit(item, text) {
    return this.#guard(this.conversation.edit(item, text));
  }

  /** @param {string} interaction */
  async showVersion(interaction) {
    const { conversation } = this;
    const shown = await this.#guard(conversation.showVersion(interaction), conversation);
    if (shown) this.tabs.announceChange(conversation.id);
    return shown;
  }

  /** @param {Action} action @param {string} itemId */
  decide(action, itemId) {
    return this.#guard(this.conversation.decide(action, itemId));
  }

  /** @param {Action} action @param {string} [itemId] */
  async act(action, itemId) {
    const { conversation } = this;
    const shown = () => conversation.items.find(({ id }) => id === itemId);
    const before = shown();
    const done = await this.#guard(conversation.act(action, itemId), conversation);
    if (conversation.error && conversation === this.conversation) void this.load(); // what was clicked is outdated
    if (!done) return;
    this.#owner.emit("todo.changed");
    this.tabs.announceChange(conversation.id);
    const announcement = (await loadLog())?.spokenAction(action, before, shown());
    if (announcement) this.#owner.announce(announcement);
  }

  /** @param {Item} item @param {Feedback} kind */
  async rate(item, kind) {
    const { conversation } = this;
    if (await this.#guard(conversation.rate(item, kind), conversation)) this.tabs.announceChange(conversation.id);
  }

  async loadHistory() {
    const done = await this.#guardHistory(this.history.load());
    for (const { id, title } of this.history.threads) if (id === this.conversation.id) this.conversation.title = title ?? null;
    clearTimeout(this.#historyTimer);
    if (this.history.threads.some(({ answering }) => answering)) this.#historyTimer = setTimeout(() => this.#refresh(null), HISTORY_PAUSE);
    return done;
  }

  moreHistory() {
    return this.#guardHistory(this.history.more());
  }

  /** @param {string} text what the titles are to have in them */
  searchHistory(text) {
    return this.#guardHistory(this.history.search(text));
  }

  /** Whether an answer runs, as far as known. @param {Thread} thread */
  isAnswered({ id, answering }) {
    const held = this.#all.find((conversation) => conversation.id === id);
    return this.tabs.answering.has(id) || (held?.streaming ?? Boolean(answering));
  }

  /** @param {Thread} thread @param {string} title */
  async rename(thread, title) {
    if (!(await this.#guardHistory(this.history.rename(thread, title)))) return;
    if (thread.id === this.conversation.id) this.conversation.title = title;
    this.tabs.announceChange(thread.id);
  }

  /** @param {Thread} thread */
  async remove(thread) {
    if (!(await this.#guardHistory(this.history.remove(thread)))) return this.loadHistory();
    for (const conversation of this.#all) if (conversation.id === thread.id) conversation.close();
    drafts.set(thread.id, "");
    this.tabs.announceChange(thread.id);
    if (thread.id === this.conversation.id) await this.open(null);
  }

  /** Shows an error that no request caused. @param {string} message */
  fail(message) {
    this.conversation.error = { message, retry: null };
    this.#owner.changed();
  }

  dismiss() {
    this.conversation.error = null;
    this.#owner.changed();
  }

  /** All open conversations, the shown one last. */
  get #all() {
    return [...this.#background, this.conversation];
  }

  /** @param {string | null} id */
  #createConversation(id) {
    /** @type {Conversation} */
    const conversation = new Conversation(
      this.api,
      {
        changed: this.#owner.changed,
        created: (thread) => this.#created(conversation, thread),
        described: (thread) => this.history.update(thread),
        running: () => {
          if (!conversation.id || this.tabs.answering.has(conversation.id)) return;
          void this.#guard(conversation.follow(), conversation);
        },
        answering: (answering) => this.#answering(conversation, answering),
        stored: () => {
          if (conversation.streaming) this.tabs.begin(conversation.id);
          this.tabs.announceChange(conversation.id);
        },
        returned: (text) => drafts.giveBack(conversation.id, text),
        withdrawn: () => conversation === this.conversation && this.#owner.withdrawn(),
        emit: (name, detail) => this.#owner.emit(name, detail),
      },
      id,
    );
    return conversation;
  }

  /** @param {Conversation} conversation @param {Thread} thread */
  #created(conversation, thread) {
    this.history.put(thread);
    if (conversation !== this.conversation) return;
    drafts.set(thread.id, drafts.get(null)); // typed while the first message was being sent
    drafts.set(null, "");
    this.#owner.emit("chatkit.thread.change", { threadId: thread.id });
  }

  /** @param {Conversation} conversation @param {boolean} answering */
  #answering(conversation, answering) {
    this.#owner.emit(answering ? "chatkit.response.start" : "chatkit.response.end");
    if (answering) this.tabs.begin(conversation.id);
    else this.tabs.end(conversation.id);
    if (conversation.id) this.history.update({ id: conversation.id, answering: undefined }); // known here
    if (!answering && conversation === this.conversation && !conversation.error) void this.#announceEnd(conversation);
    if (!answering && conversation.items.filter(({ type }) => type === "user_message").length === 1) {
      for (const pause of TITLE_PAUSES) setTimeout(() => this.#closed.signal.aborted || this.#refresh(null), pause);
    }
    this.#owner.changed();
  }

  /** @param {Conversation} conversation */
  async #announceEnd({ stopped, answer }) {
    if (stopped) return this.#owner.announce(TEXTS.talk.stopped);
    const log = await loadLog();
    if (log) this.#owner.announce(log.spokenAnswer(answer));
  }

  /** Handles a change in another tab. @param {string} thread @param {boolean} ended whether its answer has ended */
  #tabChanged(thread, ended) {
    const { conversation } = this;
    if (ended && thread === conversation.id) conversation.endedInOtherTab();
    this.#owner.changed();
    this.#refresh(thread);
  }

  /** Loads what other tabs have changed. @param {string | null} [thread] only this conversation */
  #refresh(thread = this.conversation.id) {
    const { conversation } = this;
    if (document.hidden || this.connection.state === "lost") return;
    if (thread === conversation.id && !conversation.streaming && !conversation.waiting) void this.load();
    if (this.history.loaded) void this.loadHistory();
  }

  /** Recovers the shown conversation last, so that its state is final once the user can write again. */
  async #recover() {
    await this.api.alive();
    await this.#guardHistory(this.history.load());
    for (const conversation of this.#all) await this.#guard(conversation.recover(), conversation, "load", ConnectionLost);
  }

  #connectionChanged() {
    this.#owner.emit("chatkit.log", { name: `connection.${this.connection.state}` });
    this.#owner.changed();
  }

  /** @param {Promise<void>} work */
  async #guardHistory(work) {
    const done = await this.#guard(work);
    this.#owner.changed();
    return done;
  }

  /**
   * Shows the error of a request; returns whether it succeeded. Errors of the class `passed` are raised.
   * @param {Promise<void>} work
   * @param {Conversation} conversation
   * @param {"load" | null} retry
   * @param {new () => Error} [passed]
   */
  async #guard(work, conversation = this.conversation, retry = null, passed) {
    try {
      await work;
      return true;
    } catch (error) {
      if (this.#closed.signal.aborted) return false;
      if (passed && error instanceof passed) throw error;
      if (error instanceof ConnectionLost) this.connection.lost();
      else if (error instanceof HttpError) this.#rejected(error, conversation, retry);
      else throw error;
      return false;
    }
  }

  /** @param {HttpError} error @param {Conversation} conversation @param {"load" | null} retry */
  #rejected(error, conversation, retry) {
    this.#owner.emit("chatkit.error", { error });
    if (error.status === 404 && retry === "load" && conversation === this.conversation) {
      void this.open(null);
      this.notice = TEXTS.talk.gone;
    } else if (error.status !== 401) {
      conversation.error = { message: error.message, retry };
    }
    this.#owner.changed();
  }
}

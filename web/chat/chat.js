// @ts-check
import { TEXTS } from "../texts.js";
import { Connection } from "./connection.js";
import { Conversation } from "./conversation.js";
import { History } from "./history.js";
import { SLOW } from "./patience.js";
import { Api, ConnectionLost, HttpError } from "./protocol.js";
import { drafts } from "./storage.js";
import { Tabs } from "./tabs.js";
/** @import {TodoChat} from "./element.js" */
/** @import {Action, Feedback, Item, Thread, Unread} from "./types" */

const MARKED = 3000; // ms
/** What draws messages, and reads them out: it is loaded with the first. */
const loadLog = () => import("./log.js").catch(() => null);
const TITLED = [2000, 10000]; // ms after a first answer, which gives a conversation its title

/** The open conversation, those whose answer goes on in the background, their list, and the other tabs. */
export class Chat {
  /** A sentence about something that happened. @type {string | null} */
  notice = null;
  /** Those that are busy though another one is shown. @type {Conversation[]} */
  #background = [];
  #closed = new AbortController();
  /** Looks whether what is answered elsewhere still is. @type {ReturnType<typeof setTimeout> | undefined} */
  #marked;
  #owner;

  /**
   * @param {{url: string, fetch?: typeof fetch}} options
   * @param {TodoChat} owner
   */
  constructor(options, owner) {
    this.#owner = owner;
    this.api = new Api(options, (waiting) => {
      if (waiting) owner.announce(SLOW);
      owner.changed();
    });
    this.history = new History(this.api);
    this.connection = new Connection(() => this.#recover(), () => this.#connectionChanged());
    this.conversation = this.#make(null);
    this.tabs = new Tabs((thread, ended) => this.#heard(thread, ended));
    const { signal } = this.#closed;
    document.addEventListener("visibilitychange", () => this.#seen(), { signal });
    addEventListener("pagehide", () => this.tabs.leave(), { signal });
  }

  close() {
    this.#closed.abort();
    clearTimeout(this.#marked);
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
    for (const other of others) if (!other.busy) other.close(); // one that is loading would follow its answer
    this.conversation = running ?? this.#make(id);
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

  /** Have it answered after the answer that is running. @param {string} text */
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
    if (shown) this.tabs.tell(conversation.id);
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
    if (!(await this.#guard(conversation.act(action, itemId), conversation))) return;
    this.#owner.emit("todo.changed");
    this.tabs.tell(conversation.id);
    const said = (await loadLog())?.spokenAction(action, before, shown());
    if (said) this.#owner.announce(said);
  }

  /** @param {Item} item @param {Feedback} kind */
  async rate(item, kind) {
    const { conversation } = this;
    if (await this.#guard(conversation.rate(item, kind), conversation)) this.tabs.tell(conversation.id);
  }

  async loadHistory() {
    const done = await this.#listed(this.history.load());
    for (const { id, title } of this.history.threads) if (id === this.conversation.id) this.conversation.title = title ?? null;
    clearTimeout(this.#marked);
    if (this.history.threads.some(({ answering }) => answering)) this.#marked = setTimeout(() => this.#seen(null), MARKED);
    return done;
  }

  moreHistory() {
    return this.#listed(this.history.more());
  }

  /** @param {string} text what the titles are to have in them */
  searchHistory(text) {
    return this.#listed(this.history.search(text));
  }

  /** Whether it is being answered, as far as we know. @param {Thread} thread */
  isAnswered({ id, answering }) {
    const held = this.#all.find((conversation) => conversation.id === id);
    return this.tabs.answering.has(id) || (held?.streaming ?? Boolean(answering));
  }

  /** @param {Thread} thread @param {string} title */
  async rename(thread, title) {
    if (!(await this.#listed(this.history.rename(thread, title)))) return;
    if (thread.id === this.conversation.id) this.conversation.title = title;
    this.tabs.tell(thread.id);
  }

  /** @param {Thread} thread */
  async remove(thread) {
    if (!(await this.#listed(this.history.remove(thread)))) return this.loadHistory();
    for (const conversation of this.#all) if (conversation.id === thread.id) conversation.close();
    drafts.set(thread.id, "");
    this.tabs.tell(thread.id);
    if (thread.id === this.conversation.id) await this.open(null);
  }

  /** Something that no request was about went wrong. @param {string} message */
  fail(message) {
    this.conversation.error = { message, retry: null };
    this.#owner.changed();
  }

  dismiss() {
    this.conversation.error = null;
    this.#owner.changed();
  }

  /** The shown one is the last. */
  get #all() {
    return [...this.#background, this.conversation];
  }

  /** @param {string | null} id */
  #make(id) {
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
          this.tabs.tell(conversation.id);
        },
        returned: (text) => drafts.giveBack(conversation.id, text),
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
    drafts.set(thread.id, drafts.get(null)); // what was written while the first message was on its way
    drafts.set(null, "");
    this.#owner.emit("chatkit.thread.change", { threadId: thread.id });
  }

  /** @param {Conversation} conversation @param {boolean} answering */
  #answering(conversation, answering) {
    this.#owner.emit(answering ? "chatkit.response.start" : "chatkit.response.end");
    if (answering) this.tabs.begin(conversation.id);
    else this.tabs.end(conversation.id);
    if (conversation.id) this.history.update({ id: conversation.id, answering: undefined }); // it is held here
    if (!answering && conversation === this.conversation && !conversation.error) void this.#announceEnd(conversation);
    if (!answering && conversation.items.filter(({ type }) => type === "user_message").length === 1) {
      for (const pause of TITLED) setTimeout(() => this.#closed.signal.aborted || this.#seen(null), pause);
    }
    this.#owner.changed();
  }

  /** @param {Conversation} conversation */
  async #announceEnd({ stopped, answer }) {
    if (stopped) return this.#owner.announce(TEXTS.talk.stopped);
    const log = await loadLog();
    if (log) this.#owner.announce(log.spokenAnswer(answer));
  }

  /** A conversation has changed in another tab. @param {string} thread @param {boolean} ended its answer there has */
  #heard(thread, ended) {
    const { conversation } = this;
    if (ended && thread === conversation.id) conversation.endedElsewhere();
    this.#owner.changed();
    this.#seen(thread);
  }

  /** Show what other tabs have changed. @param {string | null} [thread] only that one */
  #seen(thread = this.conversation.id) {
    const { conversation } = this;
    if (document.hidden || this.connection.state === "lost") return;
    if (thread === conversation.id && !conversation.streaming && !conversation.waiting) void this.load();
    if (this.history.loaded) void this.loadHistory();
  }

  /** Looks at the shown one last: what it says of a message is true once one may write again. */
  async #recover() {
    await this.api.alive();
    await this.#listed(this.history.load());
    for (const conversation of this.#all) await this.#guard(conversation.recover(), conversation, "load", ConnectionLost);
  }

  #connectionChanged() {
    this.#owner.emit("chatkit.log", { name: `connection.${this.connection.state}` });
    this.#owner.changed();
  }

  /** @param {Promise<void>} work */
  async #listed(work) {
    const done = await this.#guard(work);
    this.#owner.changed();
    return done;
  }

  /**
   * Show what went wrong with a request; true when nothing did. Errors of `passed` are the caller's.
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
      else if (error instanceof HttpError) this.#refused(error, conversation, retry);
      else throw error;
      return false;
    }
  }

  /** @param {HttpError} error @param {Conversation} conversation @param {"load" | null} retry */
  #refused(error, conversation, retry) {
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

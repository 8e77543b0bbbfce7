// @ts-check
import { Connection } from "./connection.js";
import { Conversation } from "./conversation.js";
import { History } from "./history.js";
import { textOf } from "./outgoing.js";
import { Api, ConnectionLost, HttpError } from "./protocol.js";
import { drafts } from "./storage.js";
/** @import {Action, Thread} from "./types" */

const GONE = "That conversation is not there any more. This is a new one.";

/** The open conversation, those whose answer goes on in the background, their list, and the other tabs. */
export class Chat {
  /** A sentence about something that happened. @type {string | null} */
  notice = null;
  /** Conversations that are answered in other tabs. @type {Set<string>} */
  answeredElsewhere = new Set();
  /** @type {Set<Conversation>} */
  #background = new Set();
  #closed = new AbortController();
  #tabs = new BroadcastChannel("todo");
  #emit;
  #changed;
  #announce;

  /**
   * @param {{url: string, fetch?: typeof fetch}} options
   * @param {{emit: (name: string, detail?: unknown) => void, changed: () => void, announce: (text: string) => void}} owner
   */
  constructor(options, { emit, changed, announce }) {
    this.api = new Api(options);
    this.#emit = emit;
    this.#changed = changed;
    this.#announce = announce;
    this.history = new History(this.api);
    this.connection = new Connection(() => this.#recover(), () => this.#connectionChanged());
    this.conversation = this.#make(null);
    this.#tabs.onmessage = ({ data }) => this.#heard(data);
    const { signal } = this.#closed;
    document.addEventListener("visibilitychange", () => this.#seen(), { signal });
    addEventListener("pagehide", () => this.#stopped(), { signal });
  }

  close() {
    this.#closed.abort();
    this.#stopped();
    for (const conversation of [this.conversation, ...this.#background]) conversation.close();
    this.connection.close();
    this.#tabs.close();
  }

  /** @param {string | null} id null: a new conversation */
  async open(id) {
    const { conversation: left } = this;
    if (id !== null && id === left.id) return;
    if (left.streaming || left.waiting) this.#background.add(left);
    const running = [...this.#background].find((other) => other.id === id && id !== null);
    this.conversation = running ?? this.#make(id);
    this.#background.delete(this.conversation);
    this.notice = null;
    this.#emit("chatkit.thread.change", { threadId: id });
    this.#changed();
    if (id === null || running) return;
    this.#emit("chatkit.thread.load.start", { threadId: id });
    await this.load();
    this.#emit("chatkit.thread.load.end", { threadId: id });
  }

  load() {
    const { conversation } = this;
    return conversation.id ? this.#guard(conversation.load(), conversation, "load") : Promise.resolve();
  }

  loadOlder() {
    return this.#guard(this.conversation.loadOlder());
  }

  /** @param {string} text */
  async send(text) {
    this.notice = null;
    await this.#guard(this.conversation.send(text));
  }

  retry() {
    return this.#guard(this.conversation.retry());
  }

  /** @param {Action} action @param {string} [itemId] */
  async act(action, itemId) {
    const { conversation } = this;
    await this.#guard(conversation.act(action, itemId));
    this.#tell(conversation);
  }

  /** @param {string} itemId @param {"positive" | "negative"} kind */
  rate(itemId, kind) {
    return this.#guard(this.conversation.rate(itemId, kind));
  }

  loadHistory() {
    return this.#listed(this.history.load());
  }

  moreHistory() {
    return this.#listed(this.history.more());
  }

  /** @param {Thread} thread @param {string} title */
  async rename(thread, title) {
    await this.#listed(this.history.rename(thread, title));
    if (thread.id === this.conversation.id) this.conversation.title = title;
    this.#tabs.postMessage({ thread: thread.id });
    this.#changed();
  }

  /** @param {Thread} thread */
  async remove(thread) {
    await this.#listed(this.history.remove(thread));
    drafts.set(thread.id, "");
    this.#tabs.postMessage({ thread: thread.id });
    if (thread.id === this.conversation.id) await this.open(null);
  }

  dismiss() {
    this.conversation.error = null;
    this.#changed();
  }

  /** @param {string | null} id */
  #make(id) {
    /** @type {Conversation} */
    const conversation = new Conversation(
      this.api,
      {
        changed: this.#changed,
        created: (thread) => this.#created(conversation, thread),
        described: (thread) => this.history.update(thread),
        answering: (answering) => this.#answering(conversation, answering),
        stored: () => this.#tell(conversation),
        returned: (text) => drafts.giveBack(conversation.id, text),
        effect: (name, data) => this.#emit("chatkit.effect", { name, data }),
        failed: (message) => this.#emit("chatkit.error", { error: new Error(message) }),
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
    this.#emit("chatkit.thread.change", { threadId: thread.id });
  }

  /** @param {Conversation} conversation @param {boolean} answering */
  #answering(conversation, answering) {
    this.#emit(answering ? "chatkit.response.start" : "chatkit.response.end");
    this.#tell(conversation);
    if (!answering) {
      this.#background.delete(conversation);
      if (conversation === this.conversation && !conversation.error) this.#announceEnd(conversation);
    }
    this.#changed();
  }

  /** @param {Conversation} conversation */
  #announceEnd({ items }) {
    const last = items.at(-1);
    this.#announce(last?.type === "assistant_message" ? `Assistant: ${textOf(last)}` : "The answer has ended.");
  }

  /** Let other tabs know that a conversation changed. @param {Conversation} conversation */
  #tell({ id, streaming }) {
    if (id && !this.#closed.signal.aborted) this.#tabs.postMessage({ thread: id, answering: streaming });
  }

  /** This tab is left: no other tab has to wait for its answers. */
  #stopped() {
    for (const { id, streaming } of [this.conversation, ...this.#background]) {
      if (id && streaming) this.#tabs.postMessage({ thread: id });
    }
  }

  /** @param {{thread: string, answering?: boolean}} message */
  #heard({ thread, answering }) {
    if (answering) this.answeredElsewhere.add(thread);
    else this.answeredElsewhere.delete(thread);
    if (thread === this.conversation.id) this.#seen();
    else void this.loadHistory();
  }

  /** Show what other tabs have changed. */
  #seen() {
    if (document.hidden || this.connection.state === "lost") return;
    if (!this.conversation.streaming && !this.conversation.waiting) void this.load();
    if (this.history.loaded) void this.loadHistory();
  }

  async #recover() {
    await this.api.alive();
    for (const conversation of [this.conversation, ...this.#background]) {
      await this.#guard(conversation.recover(), conversation, "load", ConnectionLost);
    }
    await this.#listed(this.history.load());
  }

  #connectionChanged() {
    this.#emit("chatkit.log", { name: `connection.${this.connection.state}` });
    this.#changed();
  }

  /** @param {Promise<void>} work */
  async #listed(work) {
    await this.#guard(work);
    this.#changed();
  }

  /**
   * Show what went wrong with a request. Errors of `passed` are the caller's.
   * @param {Promise<void>} work
   * @param {Conversation} conversation
   * @param {"load" | null} retry
   * @param {new () => Error} [passed]
   */
  async #guard(work, conversation = this.conversation, retry = null, passed) {
    try {
      await work;
    } catch (error) {
      if (this.#closed.signal.aborted) return;
      if (passed && error instanceof passed) throw error;
      if (error instanceof ConnectionLost) this.connection.lost();
      else if (error instanceof HttpError) this.#refused(error, conversation, retry);
      else throw error;
    }
  }

  /** @param {HttpError} error @param {Conversation} conversation @param {"load" | null} retry */
  #refused(error, conversation, retry) {
    this.#emit("chatkit.error", { error });
    if (error.status === 404 && retry === "load" && conversation === this.conversation) {
      void this.open(null);
      this.notice = GONE;
    } else if (error.status !== 401) {
      conversation.error = { message: error.message, retry };
    }
    this.#changed();
  }
}

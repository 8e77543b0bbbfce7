// @ts-check
import { TEXTS } from "../texts.js";
import { Connection } from "./connection.js";
import { Conversation } from "./conversation.js";
import { Drafts } from "./drafts.js";
import { History } from "./history.js";
import { loadLog } from "./load-log.js";
import { storedMessages } from "./outgoing.js";
import { Api, ConnectionLost, HttpError } from "./protocol.js";
import { Tabs } from "./tabs.js";
/** @import {Unsaved} from "../unsaved.js" */
/** @import {TodoChat} from "./element.js" */
/** @import {More, Outgoing} from "./outgoing.js" */
/** @import {Action, Feedback, Item, Thread, Unread} from "./types" */

const HISTORY_PAUSE = 3000; // ms
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
  #unsaved;

  /**
   * @param {{url: string, fetch: typeof fetch}} options
   * @param {Unsaved} unsaved
   * @param {TodoChat} owner
   */
  constructor(options, unsaved, owner) {
    this.#owner = owner;
    this.#unsaved = unsaved;
    this.drafts = new Drafts(this.#unsaved);
    this.api = new Api(options, (isNews) => {
      if (isNews) owner.announce(TEXTS.talk.slow);
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

  /** Opens a conversation, or the new one whose messages were not sent before the page was closed. @param {string | null} id */
  async begin(id) {
    this.#unsaved.addEventListener("change", () => this.#readUnsaved(), { signal: this.#closed.signal });
    this.#restore(id === null ? this.conversation : undefined);
    if (id !== null || !this.conversation.busy) return this.open(id);
    this.#owner.emit("chatkit.thread.change", { threadId: this.conversation.id });
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
    if (id !== null && id === this.conversation.id) return;
    const busy = this.#background.find((other) => other.id === id && id !== null && other.busy);
    this.show(busy ?? this.#createConversation(id));
    if (id === null) return;
    const isUnknown = this.history.loaded && !this.history.threads.some((thread) => thread.id === id); // such as a schedule's
    if (isUnknown) void this.loadHistory();
    if (!busy?.streaming) await this.load();
  }

  /** New conversations behind the shown one whose messages are not sent. */
  get begun() {
    return this.#background.filter(({ id, busy }) => id === null && busy);
  }

  /** @param {Conversation} conversation */
  show(conversation) {
    const others = [...this.#background, this.conversation].filter((other) => other !== conversation);
    this.#background = others.filter(({ busy }) => busy);
    for (const other of others) if (!other.busy) other.close(); // a loading one would follow its answer
    this.conversation = conversation;
    this.notice = null;
    this.#owner.emit("chatkit.thread.change", { threadId: conversation.id });
    this.#owner.changed();
  }

  load() {
    const { conversation } = this;
    return conversation.id ? this.#guard(conversation.load(), conversation, "load") : Promise.resolve();
  }

  loadOlder() {
    return this.#guard(this.conversation.loadOlder());
  }

  /** @param {string} text @param {More} [more] */
  async send(text, more) {
    const { conversation } = this;
    this.notice = null;
    if (this.connection.state === "lost") this.#owner.announce(TEXTS.talk.later);
    else if (conversation.streaming) this.#owner.announce(TEXTS.talk.queued);
    await this.#guard(conversation.send(text, more), conversation);
  }

  /** Sends a message that the server may know no longer. @param {Outgoing} outgoing */
  sendAgain(outgoing) {
    return this.#guard(this.conversation.sendAgain(outgoing));
  }

  /** @param {Outgoing} outgoing */
  discard(outgoing) {
    this.conversation.outbox.remove(outgoing);
    this.#owner.changed();
  }

  /** Sends a message that no answer has read, and that is too old to be sent by itself. @param {Unread} message */
  sendUnread(message) {
    const { conversation } = this;
    conversation.queue.sendAgain(message);
    return this.#guard(conversation.deliver(), conversation);
  }

  /** @param {Unread} message */
  sendNow(message) {
    const { conversation } = this;
    return this.#guard(conversation.queue.sendNow(message), conversation);
  }

  /** @param {Unread} message */
  unqueue(message) {
    const { conversation } = this;
    return this.#guard(conversation.queue.remove(message), conversation);
  }

  retry() {
    return this.#guard(this.conversation.retry());
  }

  /** Replaces a message, which is answered again. @param {Item} item @param {string} text */
  async edit({ id }, text) {
    if (!this.conversation.streaming) await this.#guard(this.conversation.send(text, { edits: id }));
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
    const announcement = (await loadLog()).spokenAction(action, before, shown());
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
    if (!(await this.#guardHistory(this.history.rename(thread, title)))) return false;
    if (thread.id === this.conversation.id) this.conversation.title = title;
    this.tabs.announceChange(thread.id);
    return true;
  }

  /** @param {Thread} thread */
  async remove(thread) {
    if (!(await this.#guardHistory(this.history.remove(thread)))) return this.loadHistory();
    for (const conversation of this.#all) {
      if (conversation.id !== thread.id) continue;
      conversation.close();
      for (const outgoing of conversation.outbox.messages) conversation.outbox.remove(outgoing);
    }
    this.drafts.forget(thread.id);
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
    return new Conversation(this, id, this.#unsaved);
  }

  /** Schedules a drawing. */
  changed() {
    this.#owner.changed();
  }

  /** Dispatches an event of the element. @param {string} name @param {unknown} [detail] */
  emit(name, detail) {
    this.#owner.emit(name, detail);
  }

  /** Whether a conversation's messages can be sent now. @param {Conversation} conversation */
  canSend({ id }) {
    return !this.#closed.signal.aborted && this.#unsaved.isConfirmed && this.connection.state !== "lost" && !this.tabs.answering.has(id);
  }

  /** Sends the next message, if it can be sent. @param {Conversation} conversation */
  sendNext(conversation) {
    if (conversation.waiting && this.canSend(conversation)) void this.#guard(conversation.deliver(), conversation);
  }

  /** Reads again what is not saved: it came from a closed tab, or was discarded. */
  #readUnsaved() {
    for (const { outbox } of this.#all) outbox.dropDiscarded();
    const { conversation } = this;
    this.#restore(conversation.id === null && !conversation.busy ? conversation : undefined);
    this.#owner.restored();
  }

  /**
   * Takes over stored messages that no conversation here has. The newest that begin a conversation are of the shown one.
   * @param {Conversation} [shown]
   */
  #restore(shown) {
    const groups = [...storedMessages(this.#unsaved)];
    const newest = shown && groups.findLast(([{ conversation }]) => conversation === null);
    for (const group of groups) {
      const [{ conversation: id, group: name }, rows] = group;
      const known = this.#all.find((one) => (id === null ? one.outbox.group === name : one.id === id)) ?? (group === newest ? shown : undefined);
      const conversation = known ?? this.#createConversation(id);
      conversation.outbox.restore(rows);
      if (!known) this.#background.push(conversation);
      if (known || id === null) this.sendNext(conversation);
      else void this.#guard(conversation.load(), conversation);
    }
  }

  /** Handles that a conversation has an id now. @param {Conversation} conversation @param {Thread} thread */
  created(conversation, thread) {
    this.history.put(thread);
    if (conversation !== this.conversation) return;
    this.drafts.created(thread.id); // typed while the first message was being sent
    this.#owner.emit("chatkit.thread.change", { threadId: thread.id });
  }

  /** Follows an answer that nobody here reads. @param {Conversation} conversation */
  follow(conversation) {
    if (!this.tabs.answering.has(conversation.id)) void this.#guard(conversation.follow(), conversation);
  }

  /** Handles that a message is in the conversation. @param {Conversation} conversation */
  stored({ id, streaming }) {
    if (streaming) this.tabs.begin(id);
    this.tabs.announceChange(id);
  }

  /** Handles that a text of the running answer was withdrawn. @param {Conversation} conversation */
  withdrawn(conversation) {
    if (conversation === this.conversation) this.#owner.withdrawn();
  }

  /** Handles the beginning of a stream. @param {Conversation} conversation */
  streamBegins({ id }) {
    this.tabs.begin(id);
    this.#owner.changed();
  }

  /** Handles the end of a stream. @param {Conversation} conversation @param {boolean} complete whether an answer came to its end */
  streamEnds(conversation, complete) {
    this.#owner.emit("chatkit.response.end");
    this.tabs.end(conversation.id);
    if (conversation.id) this.history.update({ id: conversation.id, answering: undefined });
    if (conversation.stopped) this.announce(conversation, TEXTS.talk.stopped);
    else if (complete && !conversation.error) void this.announceAnswer(conversation);
    if (conversation.items.filter(({ type }) => type === "user_message").length === 1) {
      for (const pause of TITLE_PAUSES) setTimeout(() => this.#closed.signal.aborted || this.#refresh(null), pause);
    }
    this.#owner.changed();
  }

  /** @param {Conversation} conversation */
  async announceAnswer(conversation) {
    const { answer } = conversation;
    this.announce(conversation, (await loadLog()).spokenAnswer(answer));
  }

  /** Announces what happened in a conversation, if it is shown. @param {Conversation} conversation @param {string} text */
  announce(conversation, text) {
    if (conversation === this.conversation) this.#owner.announce(text);
  }

  /** Handles a change in another tab. @param {string} thread @param {boolean} ended whether its answer has ended */
  #tabChanged(thread, ended) {
    const { conversation } = this;
    if (ended && thread === conversation.id) conversation.endedInOtherTab();
    if (ended) for (const other of this.#background) if (other.id === thread) this.sendNext(other);
    this.#owner.changed();
    this.#refresh(thread);
  }

  /** Loads what other tabs have changed. @param {string | null} [thread] only this conversation */
  #refresh(thread = this.conversation.id) {
    const { conversation } = this;
    if (document.hidden || this.connection.state === "lost") return;
    if (thread === conversation.id && !conversation.streaming && !conversation.sent) void this.load();
    if (this.history.loaded) void this.loadHistory();
  }

  /** Recovers the shown conversation last, so that its state is final once the user can write again. */
  async #recover() {
    await this.api.alive();
    await this.#guardHistory(this.history.load());
    for (const conversation of this.#all) await this.#guard(conversation.recover(), conversation, "load", ConnectionLost);
  }

  #connectionChanged() {
    if (this.connection.state === "back") for (const conversation of this.#all) this.sendNext(conversation);
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

  /** Moves what was typed in a conversation that no longer exists to a new one. @param {Conversation} conversation */
  #leaveGone(conversation) {
    conversation.returnMessages();
    const text = this.drafts.get(conversation.id);
    if (text) this.drafts.giveBack(null, text);
    if (conversation.id) this.drafts.forget(conversation.id);
  }

  /** @param {HttpError} error @param {Conversation} conversation @param {"load" | null} retry */
  #rejected(error, conversation, retry) {
    this.#owner.emit("chatkit.error", { error });
    if (error.status === 404 && retry === "load" && conversation === this.conversation) {
      this.#leaveGone(conversation);
      void this.open(null);
      this.notice = TEXTS.talk.gone;
    } else if (error.status !== 401) {
      conversation.error = { message: error.message, retry };
    }
    this.#owner.changed();
  }
}

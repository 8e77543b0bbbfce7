// @ts-check
import { TEXTS } from "../texts.js";
import { Actions } from "./actions.js";
import { Outbox } from "./outgoing.js";
import { Pages } from "./pages.js";
import { ConnectionLost, HttpError, chatPath } from "./protocol.js";
import { Queue } from "./queue.js";
import { reduce } from "./reduce.js";
import { textOf } from "./tags.js";
/** @import {Unsaved} from "../unsaved.js" */
/** @import {More, Outgoing} from "./outgoing.js" */
/** @import {Chat} from "./chat.js" */
/** @import {Action, Feedback, Item, Progress, Retry, Thread, ThreadEvent} from "./types" */

const REMOVE_FEEDBACK = { type: "take_feedback_back" }; // an extension: ChatKit has no request for it
const FOLLOW = { type: "follow", payload: {} }; // an extension: follows an answer that runs already
const INTERACTION = "todo.interaction"; // names the run of an answer
const STORE_DELAY = 500; // ms until the run of a stopped request has ended
const MAX_PAUSE = 10_000; // ms
const NEVER = () => false;
const UNAUTHORIZED = 401; // status
const KEY_USED = 409; // status: the key belongs to another request, by which the message was sent

/** Returns the progress with this text; the same one again goes on. @param {string} text @param {string} [icon] @param {Progress | null} [before] @returns {Progress} */
const newProgress = (text, icon, before) => ({
  text,
  done: icon?.startsWith("check") ?? false,
  since: before?.text === text ? before.since : Date.now(),
});

/** One conversation: its items, the streamed answer, and its error. */
export class Conversation {
  /** @type {readonly Item[]} */
  items = [];
  /** Each is shown after an item. @type {readonly {after?: string, message: string}[]} */
  notices = [];
  /** @type {string | null} */
  title = null;
  streaming = false;
  /** Whether an answer ran when the conversation was loaded, which this page does not follow. */
  running = false;
  /** What the assistant does, since when in ms. @type {Progress | null} */
  progress = null;
  /** `after` is the last item at that time. @type {{message: string, retry: Retry, after?: string} | null} */
  error = null;

  /** The message that is being sent. @type {Outgoing | null} */
  sent = null;
  /** The message on its way to the queue. @type {Outgoing | null} */
  #queueing = null;
  /** Items that are not complete yet. @type {Set<string>} */
  #open = new Set();
  /** Whether the connection broke during an answer. */
  #broken = false;
  /** The run of the streamed answer, once it is known. @type {string | null} */
  #run = null;
  /** Whether the answer was stopped before its run was known; then it is cancelled later. */
  #stopPending = false;
  /** Whether an answer in another tab has just ended, whose last items may not be stored yet. */
  #settling = false;
  /** Counts changes that make a pending response outdated. */
  #version = 0;
  /** How many loads are under way. */
  #loads = 0;
  #closed = false;
  #abort = new AbortController();
  /** The request that creates the conversation without a message. @type {Promise<unknown> | null} */
  #creation = null;
  /** Callbacks that wait for the next run or the end of the stream. @type {(() => void)[]} */
  #waiting = [];
  #api;
  #chat;

  /** @param {Chat} chat @param {string | null} id @param {Unsaved} unsaved */
  constructor(chat, id, unsaved) {
    this.#api = chat.api;
    this.#chat = chat;
    this.id = id;
    this.outbox = new Outbox(unsaved);
    this.pages = new Pages(chat.api);
    this.actions = new Actions(chat.api, { changed: () => chat.changed(), receive: (event) => this.#receiveFromAction(event) });
    this.queue = new Queue(chat.api, this);
  }

  /** Whether a message is being sent, or will be. */
  get waiting() {
    return this.outbox.next !== undefined;
  }

  /** Whether the conversation must stay in memory while another one is shown. */
  get busy() {
    return this.streaming || this.outbox.messages.length > 0 || this.actions.running.size > 0;
  }

  get loading() {
    return this.#loads > 0;
  }

  /** Whether its items are being loaded for the first time; an answer meanwhile would outdate them. */
  get isUnknown() {
    return this.loading && this.items.length === 0;
  }

  /** Whether the user stopped the last answer in this tab. */
  get stopped() {
    return this.#abort.signal.aborted;
  }

  /** The items after the last message. */
  get answer() {
    return this.items.slice(this.items.findLastIndex(({ type }) => type === "user_message") + 1);
  }

  get lastQuestion() {
    return this.items.findLast(({ type }) => type === "user_message");
  }

  /** Whether the last message has no answer and gets none. */
  get unanswered() {
    return !this.streaming && !this.waiting && !this.#settling && this.items.at(-1)?.type === "user_message";
  }

  /** @param {Item} item */
  isOpen(item) {
    return this.streaming && this.#open.has(item.id);
  }

  /** Loads the newest items and the title. */
  async load() {
    const version = ++this.#version;
    await this.#loading(async () => {
      const [chat, page] = await Promise.all([
        this.#api.json(`${chatPath(String(this.id))}?limit=0`),
        this.pages.load(this.id),
      ]);
      this.#update(chat);
      if (this.error?.retry === "load") this.error = null;
      if (version !== this.#version) return;
      this.running = page.answering !== undefined;
      if (!this.running) this.#stopPending = false;
      this.items = this.pages.join(this.items, page);
      this.queue.load(chat.unread);
      this.notices = this.notices.filter(({ message }) => !this.items.some(({ task }) => task?.title === message));
      const { error } = this;
      if (error?.retry === "send" && error.after !== this.items.at(-1)?.id && !this.unanswered) this.error = null;
    });
    if (this.#closed || this.streaming || this.sent || this.isUnknown) return;
    if (this.waiting) this.#chat.sendNext(this);
    else if (this.running && !this.busy) this.#chat.follow(this);
  }

  /** Follows the running answer from its beginning. */
  async follow() {
    if (this.streaming || this.sent) return;
    await this.#stream("threads.custom_action", { thread_id: this.id, action: FOLLOW });
    if (!this.#run && !this.stopped) await this.load(); // it had ended already
  }

  async loadOlder() {
    if (this.loading || !this.pages.hasMore) return;
    const [oldest] = this.items;
    await this.#loading(async () => {
      const page = await this.pages.older(this.id);
      if (this.items[0]?.id === oldest?.id) this.items = this.pages.prepend(page, this.items);
    });
  }

  /** Creates the conversation before the first message, for uploaded files. @param {string} title */
  async begin(title) {
    if (this.id !== null) return;
    this.#creation ??= this.#api.json("conversations", { title }).then((thread) => this.id ?? this.#update(thread));
    await this.#creation.finally(() => (this.#creation = null));
  }

  /** Adds a message, which is sent when its turn comes. @param {string} text @param {More} [more] */
  async send(text, more = {}) {
    const stored = this.outbox.add(text, this.id, more);
    this.#chat.changed();
    await stored;
    await this.deliver();
  }

  /** Sends the next message, to the running answer if there is one; the others follow once it is confirmed. */
  async deliver() {
    const { next } = this.outbox;
    if (!next || this.sent || this.#queueing || this.#closed || this.isUnknown || !this.#chat.canSend(this)) return;
    const { run, edits } = next.message;
    if (run || (this.streaming && !edits)) await this.#enqueue(next);
    else if (this.streaming) return;
    else if (this.running && !next.tried && !edits) this.#chat.follow(this);
    else await this.#send(next);
  }

  /** @param {Outgoing} outgoing */
  async #enqueue(outgoing) {
    this.#queueing = outgoing;
    let queued = false;
    try {
      queued = await this.queue.add(outgoing);
    } catch (error) {
      this.#queueing = null;
      if (error instanceof HttpError && error.status !== UNAUTHORIZED) this.returnMessages();
      throw error;
    }
    this.#queueing = null;
    if (queued) this.#confirm(outgoing);
    else if (this.stopped) this.returnMessages();
    else this.#chat.sendNext(this);
    if (queued && !this.streaming) this.#loadLater(0, NEVER);
  }

  /** @param {Outgoing} outgoing */
  async #send(outgoing) {
    const { message, key, input } = outgoing;
    this.sent = outgoing;
    if (!outgoing.tried) this.#stopPending = false;
    outgoing.waits = outgoing.tried && (this.running || outgoing.unread !== null);
    outgoing.tried = true;
    if (this.id === null) {
      outgoing.message = { ...message, creates: true };
      await this.outbox.save(outgoing);
    }
    const metadata = { ...message.metadata, idempotency_key: key };
    if (message.edits) {
      const place = this.items.findIndex(({ id }) => id === message.edits);
      outgoing.replaced = this.items;
      if (place >= 0) this.items = this.items.slice(0, place);
      const action = { type: "edit_message", payload: { item_id: message.edits, content: message.content } };
      await this.#stream("threads.custom_action", { thread_id: this.id, action }, metadata);
      this.#loadLater(0, NEVER);
    } else if (outgoing.message.creates) await this.#stream("threads.create", { input }, metadata);
    else await this.#stream("threads.add_user_message", { thread_id: this.id, input }, metadata);
  }

  /** Handles a change of the queue. */
  queueChanged() {
    this.#version += 1;
    this.#chat.changed();
  }

  /** Returns a text that was not sent to the user. @param {string} text */
  giveBack(text) {
    this.#chat.drafts.giveBack(this.id, text);
  }

  /** Resolves with the run that answers, other than one that has ended; null without one. @param {string} [ended] */
  async answeringRun(ended) {
    while (this.streaming && (!this.#run || this.#run === ended)) await new Promise((resolve) => this.#waiting.push(() => resolve(null)));
    return this.streaming ? this.#run : null;
  }

  #notifyWaiting() {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Requests another answer to the last message. */
  async retry() {
    const { items, lastQuestion } = this;
    if (!lastQuestion || this.streaming) return;
    this.items = items.slice(0, items.indexOf(lastQuestion) + 1);
    try {
      await this.#stream("threads.retry_after_item", { thread_id: this.id, item_id: lastQuestion.id });
    } catch (error) {
      if (error instanceof HttpError) this.items = items; // nothing was changed
      throw error;
    }
    this.#loadLater(0, NEVER); // loads the new versions
  }

  /** Shows the branch with this interaction. @param {string} interaction */
  async showVersion(interaction) {
    const action = { type: "show_version", payload: { interaction_id: interaction } };
    await this.#api.ask("threads.sync_custom_action", { thread_id: this.id, action });
    this.error = null;
    this.notices = [];
    await this.load();
  }

  /** Stops the answer; one to a message that is not confirmed once it is, which a second request finds out. */
  stop() {
    this.#stopPending = !this.#run || this.sent !== null;
    if (!this.sent) {
      if (this.id && this.#run) void this.#api.cancel(this.id, this.#run).catch(() => {}); // loading shows the result
      this.returnMessages();
    }
    this.#abort.abort();
  }

  /** Loads the conversation after an answer in another tab, which may not be stored yet. */
  endedInOtherTab() {
    if (this.error?.retry === "send") this.error = null;
    this.#settling = true;
    this.#loadLater(STORE_DELAY, (pause) => pause < MAX_PAUSE);
  }

  close() {
    this.#closed = true;
    this.#abort.abort();
  }

  /** Decides an approval card; the run continues. @param {Action} action @param {string} itemId */
  async decide({ type, payload }, itemId) {
    await this.#stream("threads.custom_action", { thread_id: this.id, item_id: itemId, action: { type, payload } });
  }

  /** @param {Action} action @param {string} [itemId] */
  act(action, itemId) {
    return this.actions.run(action, this.id, itemId);
  }

  /** Rates an answer; the same rating again removes it. @param {Item} item @param {Feedback} kind */
  async rate({ id, feedback }, kind) {
    const taken = feedback === kind;
    if (taken) await this.#api.ask("threads.sync_custom_action", { thread_id: this.id, item_id: id, action: REMOVE_FEEDBACK });
    else await this.#api.ask("items.feedback", { thread_id: this.id, item_ids: [id], kind });
    this.#version += 1;
    this.items = this.items.map((item) => (item.id === id ? { ...item, feedback: taken ? undefined : kind } : item));
    this.#chat.changed();
  }

  /** Loads the conversation after a reconnection. */
  async recover() {
    if (this.streaming) return;
    if (this.id) await this.load();
    const broken = this.#broken;
    this.#broken = false;
    if (!broken || this.streaming) return;
    this.#loadLater();
    if (this.#run && !this.running) void this.#chat.announceAnswer(this); // it has ended meanwhile
  }

  /** @param {() => Promise<void>} work */
  async #loading(work) {
    this.#loads += 1;
    this.#chat.changed();
    try {
      await work();
    } finally {
      this.#loads -= 1;
      this.#chat.changed();
    }
  }

  /** @param {string} type @param {Record<string, unknown>} params @param {object} [metadata] */
  async #stream(type, params, metadata) {
    const abort = new AbortController();
    if (!this.sent && params.action !== FOLLOW) this.#stopPending = false;
    await this.#read(this.#api.stream(type, params, abort.signal, { ...metadata }), abort);
    if (this.#run || params.action !== FOLLOW) this.#chat.sendNext(this); // otherwise loading shows what comes first
  }

  /** @param {AsyncGenerator<ThreadEvent, void>} events @param {AbortController} abort */
  async #read(events, abort) {
    const { signal } = (this.#abort = abort);
    let rejected = false;
    let complete = false;
    this.#run = null;
    this.#version += 1;
    this.#settling = false;
    this.#open.clear();
    Object.assign(this, { streaming: true, running: false, progress: null, error: null });
    this.#chat.streamBegins(this);
    try {
      for await (const event of events) {
        rejected ||= event.type === "error";
        this.#receive(event);
      }
      if (!rejected && (this.sent || this.#open.size)) throw new ConnectionLost(); // the stream ended early
      complete = this.#run !== null;
    } catch (error) {
      if (!signal.aborted) this.#break(error);
    } finally {
      this.streaming = false;
      this.progress = null;
      this.#notifyWaiting();
      this.#chat.streamEnds(this, complete);
    }
    const unread = this.queue.ended({ stopped: signal.aborted, failed: rejected && this.#run !== null });
    if (this.sent) this.#unsend(); // it was stopped
    else if (signal.aborted || rejected || unread) this.#loadLater();
    if (this.waiting) this.#noteError();
  }

  /** Shows an error where it came, as the next answer begins at once. */
  #noteError() {
    const { error } = this;
    if (!error) return;
    this.notices = [...this.notices, error];
    this.error = null;
    this.#chat.announce(this, error.message);
  }

  /** @param {unknown} error */
  #break(error) {
    this.#broken = error instanceof ConnectionLost;
    const status = error instanceof HttpError ? error.status : null;
    if (status === KEY_USED && this.sent?.unread) return this.#removeSent(this.sent);
    const unauthorized = status === UNAUTHORIZED; // its user may come back
    if (this.sent && !this.#broken && !unauthorized) this.returnMessages();
    this.#unsend();
    throw error;
  }

  /** Handles that a message has been sent already, by another tab or before this page was closed. @param {Outgoing} outgoing */
  #removeSent(outgoing) {
    this.sent = null;
    this.#remove(outgoing);
    this.#loadLater(0, NEVER);
  }

  /** @param {Outgoing} outgoing */
  #remove(outgoing) {
    this.outbox.remove(outgoing);
    if (outgoing.unread) void this.queue.drop(outgoing.unread);
  }

  /** Leaves the message that was being sent for the next time. */
  #unsend() {
    this.items = this.sent?.replaced ?? this.items;
    this.sent = null;
  }

  /** @param {ThreadEvent} event */
  #receive(event) {
    switch (event.type) {
      case "thread.created":
      case "thread.updated":
        this.#update(event.thread);
        break;
      case "progress_update":
        this.progress = newProgress(event.text, event.icon, this.progress);
        break;
      case "client_effect":
        if (event.name === INTERACTION) this.#begins(String(event.data?.interaction_id));
        break;
      case "notice":
        this.notices = [...this.notices, { ...event, after: this.items.at(-1)?.id }];
        break;
      case "error":
        this.#rejected(event.message, event.allow_retry ?? false);
        break;
      default:
        this.#receiveItem(event);
    }
    this.#chat.changed();
  }

  /** @param {string} run */
  #begins(run) {
    this.#run = run;
    this.#notifyWaiting();
    if (this.#stopPending && !this.sent) this.stop();
    else this.#chat.sendNext(this);
  }

  /** @param {ThreadEvent} event */
  #receiveItem(event) {
    if ("item" in event) {
      if (event.type === "thread.item.added") this.#open.add(event.item.id);
      else this.#open.delete(event.item.id);
      if (this.sent && event.item.type === "user_message") this.#confirm(this.sent);
      this.queue.read(event.item.id);
      if (event.type === "thread.item.done" && event.item.widget) this.#chat.emit("todo.changed", {}); // of a tool
    } else if (event.type === "thread.item.removed") {
      this.#removeItem(event.item_id);
    }
    const items = reduce(this.items, event);
    if (items !== this.items) this.#version += 1;
    this.items = items;
    if (event.type === "thread.item.updated" && event.update.type.startsWith("assistant_message")) this.progress = null;
  }

  /** Handles the removal of an item. One with a text was withdrawn, and another text will come. @param {string} id */
  #removeItem(id) {
    this.#open.delete(id);
    const item = this.items.find((other) => other.id === id);
    if (item?.type !== "assistant_message" || !textOf(item)) return;
    this.progress = newProgress(TEXTS.talk.correcting);
    this.#chat.withdrawn(this);
  }

  /** Handles an event of an action's stream, which may come during a run. @param {ThreadEvent} event */
  #receiveFromAction(event) {
    if (event.type === "error") this.#fail(event.message, null);
    else this.#receive(event);
    if (!this.streaming) this.progress = null;
  }

  /** The server has stored the message. @param {Outgoing} outgoing */
  #confirm(outgoing) {
    const answered = this.sent === outgoing;
    if (answered) this.sent = null;
    this.#remove(outgoing);
    this.#chat.stored(this);
    if (answered && this.#stopPending && this.#run) this.stop();
    else this.#chat.sendNext(this);
  }

  /** Returns the texts of all messages that are to be sent to the composer. */
  returnMessages() {
    const returned = this.outbox.messages.filter((outgoing) => !outgoing.old && outgoing !== this.#queueing);
    this.#unsend();
    for (const outgoing of returned) this.#remove(outgoing);
    if (returned.length) this.giveBack(returned.map(({ message }) => message.text).join("\n\n"));
  }

  /** @param {string | undefined} message @param {boolean} again */
  #rejected(message, again) {
    const { sent } = this;
    if (sent?.waits) return this.#await(sent);
    if (sent) this.returnMessages(); // the error came before the message was stored
    const retry = sent ? "send" : "answer";
    this.#fail(message, again && !sent?.message.edits ? retry : null); // a retry would send a new message
  }

  /** Leaves a message until the running answer can be followed. @param {Outgoing} outgoing */
  #await(outgoing) {
    this.#unsend();
    outgoing.tried = false;
    this.running = true;
  }

  /** Sends an old message again. @param {Outgoing} outgoing */
  async sendAgain(outgoing) {
    const { text, edits, metadata } = outgoing.message;
    const more = outgoing.isEarlier ? { edits } : { edits, metadata }; // the text alone is shown and approved
    this.outbox.remove(outgoing);
    await this.send(text, more);
  }

  /** @param {string | undefined} message @param {Retry} retry */
  #fail(message, retry) {
    this.error = { message: message || TEXTS.talk.wrong, retry, after: this.items.at(-1)?.id };
    this.#chat.emit("chatkit.error", { error: new Error(this.error.message) });
    this.#chat.changed();
  }

  /** @param {Thread} thread */
  #update(thread) {
    const created = this.id === null;
    this.id = thread.id;
    this.title = thread.title ?? null;
    if (created) this.outbox.nameConversation(thread.id);
    if (created) this.#chat.created(this, thread);
    this.#chat.history.update(thread);
  }

  /**
   * Loads the conversation after a pause, and `again` until there is an answer; by default while an answer runs in another
   * tab.
   * @param {number} [pause] @param {(pause: number) => boolean} [again]
   */
  #loadLater(pause = STORE_DELAY, again = () => this.error?.retry === "send") {
    setTimeout(async () => {
      if (!this.id || this.streaming || this.#closed) return;
      await this.load().catch(() => {});
      this.#settling = false;
      this.#chat.changed();
      if (this.unanswered && again(pause)) this.#loadLater(Math.min(pause * 1.5, MAX_PAUSE), again);
    }, pause);
  }
}

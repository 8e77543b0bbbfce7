// @ts-check
import { TEXTS } from "../texts.js";
import { Actions } from "./actions.js";
import { Outgoing } from "./outgoing.js";
import { Pages } from "./pages.js";
import { ConnectionLost, HttpError, chatPath } from "./protocol.js";
import { Queue } from "./queue.js";
import { reduce } from "./reduce.js";
import { textOf } from "./tags.js";
/** @import {Api} from "./protocol.js" */
/** @import {Action, ConversationOwner, Feedback, Item, Progress, Retry, Status, Thread, ThreadEvent} from "./types" */

const REMOVE_FEEDBACK = { type: "take_feedback_back" }; // an extension: ChatKit has no request for it
const FOLLOW = { type: "follow", payload: {} }; // an extension: follows an answer that runs already
const INTERACTION = "todo.interaction"; // names the run of an answer
const STORE_DELAY = 500; // ms until the run of a stopped request has ended
const MAX_PAUSE = 10_000; // ms
const NEVER = () => false;

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
  /** Each is shown after an item. @type {readonly {after?: string, level: string, title?: string, message: string}[]} */
  notices = [];
  /** @type {string | null} */
  title = null;
  /** @type {Status} */
  status = { type: "active" };
  loading = false;
  streaming = false;
  /** Whether an answer ran when the conversation was loaded, which this page does not follow. */
  running = false;
  allowCancel = true;
  /** What the assistant does, since when in ms. @type {Progress | null} */
  progress = null;
  /** `after` is the last item at that time. @type {{message: string, retry: Retry, after?: string} | null} */
  error = null;

  /** @type {Outgoing | null} */
  #outgoing = null;
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
  #closed = false;
  #abort = new AbortController();
  /** The request that creates the conversation without a message. @type {Promise<unknown> | null} */
  #creation = null;
  /** Callbacks that wait for the next run or the end of the stream. @type {(() => void)[]} */
  #waiting = [];
  #api;
  #owner;

  /** @param {Api} api @param {ConversationOwner} owner @param {string | null} id */
  constructor(api, owner, id) {
    this.#api = api;
    this.#owner = owner;
    this.id = id;
    this.pages = new Pages(api);
    this.actions = new Actions(api, { changed: owner.changed, receive: (event) => this.#receiveFromAction(event) });
    this.queue = new Queue(api, {
      changed: () => {
        this.#version += 1;
        owner.changed();
      },
      returned: owner.returned,
      has: (itemId) => this.items.some((item) => item.id === itemId),
      interaction: (ended) => this.#interaction(ended),
      send: (text) => (this.streaming ? this.queue.add(text, String(this.id)) : this.send(text)),
    });
  }

  /** Whether a message is being sent. */
  get waiting() {
    return this.#outgoing !== null;
  }

  /** Whether the conversation must stay in memory while another one is shown. */
  get busy() {
    return this.streaming || this.waiting || this.actions.running.size > 0 || this.queue.busy;
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
    let running = false;
    await this.#loading(async () => {
      const [chat, page] = await Promise.all([
        this.#api.json(`${chatPath(String(this.id))}?limit=0`),
        this.pages.load(this.id),
      ]);
      this.#update(chat);
      if (this.error?.retry === "load") this.error = null;
      if (version !== this.#version) return;
      running = this.running = Boolean(chat.answering);
      if (!this.running) this.#stopPending = false;
      this.items = this.pages.join(this.items, page);
      this.queue.load(chat.unread, this.items);
      this.notices = this.notices.filter(({ message }) => !this.items.some(({ task }) => task?.title === message));
      const { error } = this;
      if (error?.retry === "send" && error.after !== this.items.at(-1)?.id && !this.unanswered) this.error = null;
    });
    if (running && !this.busy && !this.#closed) this.#owner.running();
  }

  /** Follows the running answer from its beginning. */
  async follow() {
    if (this.busy) return;
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
    this.#creation ??= this.#api.json("/conversations", { title }).then((thread) => this.id ?? this.#update(thread));
    await this.#creation.finally(() => (this.#creation = null));
  }

  /** @param {string} text @param {string} [unsent] the message of the queue that it is @param {object} [metadata] of one that begins it */
  async send(text, unsent, metadata) {
    const outgoing = this.#show(text);
    outgoing.unsent = unsent;
    if (this.id === null) await this.#stream("threads.create", { input: outgoing.input }, metadata);
    else await this.#stream("threads.add_user_message", { thread_id: this.id, input: outgoing.input });
  }

  /** @param {string} text */
  #show(text) {
    const outgoing = (this.#outgoing = new Outgoing(text, this.items, this.#api.now()));
    this.items = [...this.items, outgoing.item];
    return outgoing;
  }

  /** Resolves with the run that answers, other than one that has ended; null without one. @param {string} [ended] */
  async #interaction(ended) {
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

  /** Replaces a message, which is answered again. @param {Item} item @param {string} text */
  async edit({ id }, text) {
    const { items } = this;
    const place = items.findIndex((item) => item.id === id);
    if (place < 0 || this.streaming) return;
    const outgoing = (this.#outgoing = new Outgoing(text, items, this.#api.now()));
    outgoing.replaced = items;
    this.items = [...items.slice(0, place), outgoing.item];
    const action = { type: "edit_message", payload: { item_id: id, content: outgoing.item.content } };
    await this.#stream("threads.custom_action", { thread_id: this.id, action });
    this.#loadLater(0, NEVER);
  }

  /** Shows the branch with this interaction. @param {string} interaction */
  async showVersion(interaction) {
    const action = { type: "show_version", payload: { interaction_id: interaction } };
    await this.#api.ask("threads.sync_custom_action", { thread_id: this.id, action });
    this.error = null;
    this.notices = [];
    await this.load();
  }

  stop() {
    if (!this.allowCancel) return;
    this.#stopPending = !this.#run;
    if (this.id && this.#run) void this.#api.cancel(this.id, this.#run).catch(() => {}); // loading shows the result
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
    if (this.#outgoing) this.#returnText(this.#outgoing);
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
    this.#owner.changed();
  }

  /** After a reconnection, finds out whether a message was stored and loads the conversation. */
  async recover() {
    if (this.streaming) return;
    if (this.#outgoing) await this.#resolveOutgoing(this.#outgoing);
    else if (this.id) await this.load();
    if (this.#broken && !this.streaming) this.#loadLater();
    this.#broken = false;
  }

  /** @param {() => Promise<void>} work */
  async #loading(work) {
    this.loading = true;
    this.#owner.changed();
    try {
      await work();
    } finally {
      this.loading = false;
      this.#owner.changed();
    }
  }

  /** @param {string} type @param {Record<string, unknown>} params @param {object} [metadata] */
  async #stream(type, params, metadata) {
    const abort = new AbortController();
    if (params.action !== FOLLOW) this.#stopPending = false;
    await this.#read(this.#api.stream(type, params, abort.signal, { ...metadata }), abort);
  }

  /** @param {AsyncGenerator<ThreadEvent, void>} events @param {AbortController} abort */
  async #read(events, abort) {
    const { signal } = (this.#abort = abort);
    let rejected = false;
    this.#run = null;
    this.#version += 1;
    this.#settling = false;
    this.#open.clear();
    Object.assign(this, { streaming: true, running: false, allowCancel: true, progress: null, error: null });
    this.#owner.answering(true);
    try {
      for await (const event of events) {
        rejected ||= event.type === "error";
        this.#receive(event);
      }
      if (!rejected && (this.#outgoing || this.#open.size)) throw new ConnectionLost(); // the stream ended early
    } catch (error) {
      if (!signal.aborted) this.#break(error);
    } finally {
      this.streaming = false;
      this.progress = null;
      this.#notifyWaiting();
      this.#owner.answering(false);
    }
    const unread = this.queue.ended({ stopped: signal.aborted, failed: rejected });
    if (signal.aborted && this.#outgoing) await this.#resolveOutgoing(this.#outgoing, STORE_DELAY);
    else if (signal.aborted || rejected || unread) this.#loadLater();
  }

  /** @param {unknown} error */
  #break(error) {
    this.#broken = error instanceof ConnectionLost;
    if (!this.#broken && this.#outgoing) this.#returnText(this.#outgoing);
    throw error;
  }

  /** @param {ThreadEvent} event */
  #receive(event) {
    switch (event.type) {
      case "thread.created":
      case "thread.updated":
        this.#update(event.thread);
        break;
      case "stream_options":
        this.allowCancel = event.stream_options.allow_cancel;
        break;
      case "progress_update":
        this.progress = newProgress(event.text, event.icon, this.progress);
        break;
      case "client_effect":
        if (event.name === INTERACTION) this.#begins(String(event.data?.interaction_id));
        else this.#owner.emit("chatkit.effect", { name: event.name, data: event.data });
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
    this.#owner.changed();
  }

  /** @param {string} run */
  #begins(run) {
    this.#run = run;
    this.#notifyWaiting();
    if (this.#stopPending) this.stop();
  }

  /** @param {ThreadEvent} event */
  #receiveItem(event) {
    if ("item" in event) {
      if (event.type === "thread.item.added") this.#open.add(event.item.id);
      else this.#open.delete(event.item.id);
      if (this.#outgoing && event.item.type === "user_message") this.#confirm(this.#outgoing);
      this.queue.read(event.item.id);
      if (event.type === "thread.item.done" && event.item.widget) this.#owner.emit("todo.changed", {}); // of a tool
    } else if (event.type === "thread.item.removed") {
      this.#remove(event.item_id);
    }
    this.#version += 1;
    this.items = reduce(this.items, event);
    if (event.type === "thread.item.updated" && event.update.type.startsWith("assistant_message")) this.progress = null;
  }

  /** Handles the removal of an item. One with a text was withdrawn, and another text will come. @param {string} id */
  #remove(id) {
    this.#open.delete(id);
    const item = this.items.find((other) => other.id === id);
    if (item?.type !== "assistant_message" || !textOf(item)) return;
    this.progress = newProgress(TEXTS.talk.correcting);
    this.#owner.withdrawn();
  }

  /** Handles an event of an action's stream, which may come during a run. @param {ThreadEvent} event */
  #receiveFromAction(event) {
    if (event.type === "stream_options") return;
    if (event.type === "error") this.#fail(event.message, null);
    else this.#receive(event);
    if (!this.streaming) this.progress = null;
  }

  /** The server has stored the message. @param {Outgoing} outgoing */
  #confirm({ item, unsent }) {
    this.#outgoing = null;
    if (unsent && this.id) void this.queue.remove(unsent, this.id).catch(() => {}); // otherwise it would stay there as unsent
    this.items = this.items.filter((other) => other !== item);
    this.#owner.stored();
  }

  /** @param {Outgoing} outgoing */
  #returnText({ item, text, replaced }) {
    this.#outgoing = null;
    this.items = replaced ?? this.items.filter((other) => other !== item);
    this.#owner.returned(text);
  }

  /** @param {string | undefined} message @param {boolean} again */
  #rejected(message, again) {
    const unsent = this.#outgoing;
    if (unsent) this.#returnText(unsent); // the error came before the message was stored
    const retry = unsent ? "send" : "answer";
    this.#fail(message, again && !unsent?.replaced ? retry : null); // a retry would send a new message
  }

  /** @param {string | undefined} message @param {Retry} retry */
  #fail(message, retry) {
    this.error = { message: message || TEXTS.talk.wrong, retry, after: this.items.at(-1)?.id };
    this.#owner.emit("chatkit.error", { error: new Error(this.error.message) });
    this.#owner.changed();
  }

  /** Finds out whether a message was stored although its request broke off. @param {Outgoing} outgoing @param {number} [pause] */
  async #resolveOutgoing(outgoing, pause = 0) {
    this.#owner.changed();
    await new Promise((resolve) => setTimeout(resolve, pause));
    if (this.#outgoing !== outgoing) return;
    const thread = await outgoing.stored(this.#api, this.pages, this.id).catch((error) => {
      if (error instanceof HttpError && this.#outgoing === outgoing) this.#returnText(outgoing);
      throw error;
    });
    if (this.#outgoing !== outgoing) return;
    if (thread) {
      this.#confirm(outgoing);
      this.#update(thread);
      await this.load();
    } else {
      this.#broken = false;
      this.#returnText(outgoing);
      this.#fail(TEXTS.talk.notSent, null);
    }
  }

  /** @param {Thread} thread */
  #update(thread) {
    const created = this.id === null;
    this.id = thread.id;
    this.title = thread.title ?? null;
    this.status = thread.status ?? this.status;
    if (created) this.#owner.created(thread);
    this.#owner.described(thread);
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
      this.#owner.changed();
      if (this.unanswered && again(pause)) this.#loadLater(Math.min(pause * 1.5, MAX_PAUSE), again);
    }, pause);
  }
}

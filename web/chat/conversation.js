// @ts-check
import { TEXTS } from "../texts.js";
import { Actions } from "./actions.js";
import { Outgoing } from "./outgoing.js";
import { Pages } from "./pages.js";
import { ConnectionLost, HttpError, chatPath } from "./protocol.js";
import { Queue } from "./queue.js";
import { reduce } from "./reduce.js";
/** @import {Api} from "./protocol.js" */
/** @import {Action, ConversationOwner, Feedback, Item, Retry, Status, Thread, ThreadEvent} from "./types" */

const TAKE_BACK = { type: "take_feedback_back" }; // not of ChatKit's protocol, which has no request for it
const FOLLOW = { type: "follow", payload: {} }; // nor has it one for the answer that runs already
const INTERACTION = "todo.interaction"; // tells which run an answer is
const STORED_BY = 500; // ms: a request that was stopped may have been on its way, and its run ends in a moment
const LONGEST_PAUSE = 10_000;
const NEVER = () => false;

/** One conversation: its items, the answer that streams, and what went wrong. */
export class Conversation {
  /** @type {readonly Item[]} */
  items = [];
  /** Each behind the item that it followed. @type {readonly {after?: string, level: string, title?: string, message: string}[]} */
  notices = [];
  /** @type {string | null} */
  title = null;
  /** @type {Status} */
  status = { type: "active" };
  loading = false;
  streaming = false;
  /** Whether an answer ran when it was loaded, which is not read here. */
  running = false;
  allowCancel = true;
  /** @type {{text: string, done: boolean} | null} */
  progress = null;
  /** `after`: the last item when it was refused. @type {{message: string, retry: Retry, after?: string} | null} */
  error = null;

  /** @type {Outgoing | null} */
  #outgoing = null;
  /** Items that were begun and not finished. @type {Set<string>} */
  #open = new Set();
  /** Whether the connection was lost in the middle of an answer. */
  #broken = false;
  /** The run whose answer streams, once it is known. @type {string | null} */
  #run = null;
  /** Whether the answer was stopped before its run was known; it is cancelled as soon as it is. */
  #stopPending = false;
  /** Whether an answer in another tab has just ended, of which more may be stored in a moment. */
  #settling = false;
  /** Counts what makes a reply that is still on its way out of date. */
  #version = 0;
  #closed = false;
  #abort = new AbortController();
  /** Its beginning without a message, while that is on its way. @type {Promise<unknown> | null} */
  #begun = null;
  /** Those who wait for the next run, or for the end of what streams. @type {(() => void)[]} */
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

  /** Whether a message is neither stored nor given back. */
  get waiting() {
    return this.#outgoing !== null;
  }

  /** Whether it has to be kept though another one is shown. */
  get busy() {
    return this.streaming || this.waiting || this.actions.running.size > 0 || this.queue.busy;
  }

  /** Whether the person stopped the last answer, in this tab. */
  get stopped() {
    return this.#abort.signal.aborted;
  }

  /** What followed the last message. */
  get answer() {
    return this.items.slice(this.items.findLastIndex(({ type }) => type === "user_message") + 1);
  }

  get lastQuestion() {
    return this.items.findLast(({ type }) => type === "user_message");
  }

  /** Whether the last message has no answer, and none is on its way. */
  get unanswered() {
    return !this.streaming && !this.waiting && !this.#settling && this.items.at(-1)?.type === "user_message";
  }

  /** @param {Item} item */
  isOpen(item) {
    return this.streaming && this.#open.has(item.id);
  }

  /** Load the newest items and the title. */
  async load() {
    const version = ++this.#version;
    let running = false;
    await this.#loading(async () => {
      const [chat, page] = await Promise.all([
        this.#api.json(`${chatPath(String(this.id))}?limit=0`),
        this.pages.load(this.id),
      ]);
      this.#describe(chat);
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

  /** Show the answer that runs, from its beginning. */
  async follow() {
    if (this.busy) return;
    await this.#turn("threads.custom_action", { thread_id: this.id, action: FOLLOW });
    if (!this.#run && !this.stopped) await this.load(); // it has ended before
  }

  async loadOlder() {
    if (this.loading || !this.pages.hasMore) return;
    const [oldest] = this.items;
    await this.#loading(async () => {
      const page = await this.pages.older(this.id);
      if (this.items[0]?.id === oldest?.id) this.items = this.pages.prepend(page, this.items);
    });
  }

  /** Before anything is said: for what is put in. @param {string} title */
  async begin(title) {
    if (this.id !== null) return;
    this.#begun ??= this.#api.json("/conversations", { title }).then((thread) => this.id ?? this.#describe(thread));
    await this.#begun.finally(() => (this.#begun = null));
  }

  /** @param {string} text @param {string} [unsent] the message of the queue that it is @param {object} [metadata] of one that begins it */
  async send(text, unsent, metadata) {
    const outgoing = this.#show(text);
    outgoing.unsent = unsent;
    if (this.id === null) await this.#turn("threads.create", { input: outgoing.input }, metadata);
    else await this.#turn("threads.add_user_message", { thread_id: this.id, input: outgoing.input });
  }

  /** @param {string} text */
  #show(text) {
    const outgoing = (this.#outgoing = new Outgoing(text, this.items, this.#api.now()));
    this.items = [...this.items, outgoing.item];
    return outgoing;
  }

  /** The run that answers, once it is known and another than the one that has ended; null once none does. @param {string} [ended] */
  async #interaction(ended) {
    while (this.streaming && (!this.#run || this.#run === ended)) await new Promise((resolve) => this.#waiting.push(() => resolve(null)));
    return this.streaming ? this.#run : null;
  }

  #wake() {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Answer the last message again. */
  async retry() {
    const { items, lastQuestion } = this;
    if (!lastQuestion || this.streaming) return;
    this.items = items.slice(0, items.indexOf(lastQuestion) + 1);
    try {
      await this.#turn("threads.retry_after_item", { thread_id: this.id, item_id: lastQuestion.id });
    } catch (error) {
      if (error instanceof HttpError) this.items = items; // nothing was dropped
      throw error;
    }
    this.#loadLater(0, NEVER); // the versions that there are now
  }

  /** Put another text in the place of a message: it is answered then. @param {Item} item @param {string} text */
  async edit({ id }, text) {
    const { items } = this;
    const place = items.findIndex((item) => item.id === id);
    if (place < 0 || this.streaming) return;
    const outgoing = (this.#outgoing = new Outgoing(text, items, this.#api.now()));
    outgoing.replaced = items;
    this.items = [...items.slice(0, place), outgoing.item];
    const action = { type: "edit_message", payload: { item_id: id, content: outgoing.item.content } };
    await this.#turn("threads.custom_action", { thread_id: this.id, action });
    this.#loadLater(0, NEVER);
  }

  /** Show another version of the conversation, in which an interaction answers. @param {string} interaction */
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
    if (this.id && this.#run) void this.#api.cancel(this.id, this.#run).catch(() => {}); // what is loaded then tells
    this.#abort.abort();
  }

  /** Its answer in another tab has ended: what was shown there until then may not be stored yet. */
  endedElsewhere() {
    if (this.error?.retry === "send") this.error = null;
    this.#settling = true;
    this.#loadLater(STORED_BY, (pause) => pause < LONGEST_PAUSE);
  }

  /** Nobody looks at it any more. */
  close() {
    this.#closed = true;
    this.#abort.abort();
    if (this.#outgoing) this.#giveBack(this.#outgoing);
  }

  /** Answer a card that asks; the turn goes on. @param {Action} action @param {string} itemId */
  async decide({ type, payload }, itemId) {
    await this.#turn("threads.custom_action", { thread_id: this.id, item_id: itemId, action: { type, payload } });
  }

  /** @param {Action} action @param {string} [itemId] */
  act(action, itemId) {
    return this.actions.run(action, this.id, itemId);
  }

  /** Give an answer a thumb; the one that it has is taken back. @param {Item} item @param {Feedback} kind */
  async rate({ id, feedback }, kind) {
    const taken = feedback === kind;
    if (taken) await this.#api.ask("threads.sync_custom_action", { thread_id: this.id, item_id: id, action: TAKE_BACK });
    else await this.#api.ask("items.feedback", { thread_id: this.id, item_ids: [id], kind });
    this.#version += 1;
    this.items = this.items.map((item) => (item.id === id ? { ...item, feedback: taken ? undefined : kind } : item));
    this.#owner.changed();
  }

  /** After the connection came back: find out what became of a message, and show what is stored. */
  async recover() {
    if (this.streaming) return;
    if (this.#outgoing) await this.#settle(this.#outgoing);
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
  async #turn(type, params, metadata) {
    const abort = new AbortController();
    if (params.action !== FOLLOW) this.#stopPending = false;
    await this.#read(this.#api.stream(type, params, abort.signal, { ...metadata }), abort);
  }

  /** @param {AsyncGenerator<ThreadEvent, void>} events @param {AbortController} abort */
  async #read(events, abort) {
    const { signal } = (this.#abort = abort);
    let refused = false;
    this.#run = null;
    this.#version += 1;
    this.#settling = false;
    this.#open.clear();
    Object.assign(this, { streaming: true, running: false, allowCancel: true, progress: null, error: null });
    this.#owner.answering(true);
    try {
      for await (const event of events) {
        refused ||= event.type === "error";
        this.#receive(event);
      }
      if (!refused && (this.#outgoing || this.#open.size)) throw new ConnectionLost(); // it ended before its end
    } catch (error) {
      if (!signal.aborted) this.#break(error);
    } finally {
      this.streaming = false;
      this.progress = null;
      this.#wake();
      this.#owner.answering(false);
    }
    const unread = this.queue.ended({ stopped: signal.aborted, failed: refused });
    if (signal.aborted && this.#outgoing) await this.#settle(this.#outgoing, STORED_BY);
    else if (signal.aborted || refused || unread) this.#loadLater();
  }

  /** @param {unknown} error */
  #break(error) {
    this.#broken = error instanceof ConnectionLost;
    if (!this.#broken && this.#outgoing) this.#giveBack(this.#outgoing);
    throw error;
  }

  /** @param {ThreadEvent} event */
  #receive(event) {
    switch (event.type) {
      case "thread.created":
      case "thread.updated":
        this.#describe(event.thread);
        break;
      case "stream_options":
        this.allowCancel = event.stream_options.allow_cancel;
        break;
      case "progress_update":
        this.progress = { text: event.text, done: event.icon?.startsWith("check") ?? false };
        break;
      case "client_effect":
        if (event.name === INTERACTION) this.#begins(String(event.data?.interaction_id));
        else this.#owner.emit("chatkit.effect", { name: event.name, data: event.data });
        break;
      case "notice":
        this.notices = [...this.notices, { ...event, after: this.items.at(-1)?.id }];
        break;
      case "error":
        this.#refused(event.message, event.allow_retry ?? false);
        break;
      default:
        this.#receiveItem(event);
    }
    this.#owner.changed();
  }

  /** @param {string} run */
  #begins(run) {
    this.#run = run;
    this.#wake();
    if (this.#stopPending) this.stop();
  }

  /** @param {ThreadEvent} event */
  #receiveItem(event) {
    if ("item" in event) {
      if (event.type === "thread.item.added") this.#open.add(event.item.id);
      else this.#open.delete(event.item.id);
      if (this.#outgoing && event.item.type === "user_message") this.#confirm(this.#outgoing);
      this.queue.read(event.item.id);
      if (event.type === "thread.item.done" && event.item.widget) this.#owner.emit("todo.changed", {}); // a tool's result
    } else if (event.type === "thread.item.removed") {
      this.#open.delete(event.item_id);
    }
    this.#version += 1;
    this.items = reduce(this.items, event);
    if (event.type === "thread.item.updated" && event.update.type.startsWith("assistant_message")) this.progress = null;
  }

  /** What an action's stream says of a turn is not about the turn that may be running. @param {ThreadEvent} event */
  #receiveFromAction(event) {
    if (event.type === "stream_options") return;
    if (event.type === "error") this.#fail(event.message, null);
    else this.#receive(event);
    if (!this.streaming) this.progress = null;
  }

  /** The server holds the message now. @param {Outgoing} outgoing */
  #confirm({ item, unsent }) {
    this.#outgoing = null;
    if (unsent && this.id) void this.queue.remove(unsent, this.id).catch(() => {}); // else it stays there, as unsent
    this.items = this.items.filter((other) => other !== item);
    this.#owner.stored();
  }

  /** @param {Outgoing} outgoing */
  #giveBack({ item, text, replaced }) {
    this.#outgoing = null;
    this.items = replaced ?? this.items.filter((other) => other !== item);
    this.#owner.returned(text);
  }

  /** @param {string | undefined} message @param {boolean} again */
  #refused(message, again) {
    const unsent = this.#outgoing;
    if (unsent) this.#giveBack(unsent); // an error before the message was confirmed: nothing was stored
    const retry = unsent ? "send" : "answer";
    this.#fail(message, again && !unsent?.replaced ? retry : null); // what sends again sends a new message
  }

  /** @param {string | undefined} message @param {Retry} retry */
  #fail(message, retry) {
    this.error = { message: message || TEXTS.talk.wrong, retry, after: this.items.at(-1)?.id };
    this.#owner.emit("chatkit.error", { error: new Error(this.error.message) });
    this.#owner.changed();
  }

  /** Find out whether a message whose request broke off was stored. @param {Outgoing} outgoing @param {number} [pause] */
  async #settle(outgoing, pause = 0) {
    this.#owner.changed();
    await new Promise((resolve) => setTimeout(resolve, pause));
    if (this.#outgoing !== outgoing) return;
    const thread = await outgoing.stored(this.#api, this.pages, this.id).catch((error) => {
      if (error instanceof HttpError && this.#outgoing === outgoing) this.#giveBack(outgoing);
      throw error;
    });
    if (this.#outgoing !== outgoing) return;
    if (thread) {
      this.#confirm(outgoing);
      this.#describe(thread);
      await this.load();
    } else {
      this.#broken = false;
      this.#giveBack(outgoing);
      this.#fail(TEXTS.talk.notSent, null);
    }
  }

  /** @param {Thread} thread */
  #describe(thread) {
    const created = this.id === null;
    this.id = thread.id;
    this.title = thread.title ?? null;
    this.status = thread.status ?? this.status;
    if (created) this.#owner.created(thread);
    this.#owner.described(thread);
  }

  /**
   * What is shown stays, should it fail. As long as there is no answer, look `again`; without it, while somebody else is
   * being answered here.
   * @param {number} [pause] @param {(pause: number) => boolean} [again]
   */
  #loadLater(pause = STORED_BY, again = () => this.error?.retry === "send") {
    setTimeout(async () => {
      if (!this.id || this.streaming || this.#closed) return;
      await this.load().catch(() => {});
      this.#settling = false;
      this.#owner.changed();
      if (this.unanswered && again(pause)) this.#loadLater(Math.min(pause * 1.5, LONGEST_PAUSE), again);
    }, pause);
  }
}

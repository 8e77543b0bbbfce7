// @ts-check
import { Actions } from "./actions.js";
import { Outgoing, textOf } from "./outgoing.js";
import { Pages } from "./pages.js";
import { ConnectionLost } from "./protocol.js";
import { reduce } from "./reduce.js";
/** @import {Api} from "./protocol.js" */
/** @import {Action, Item, Status, Thread, ThreadEvent} from "./types" */

export { reduce };

const STORED_BY = 500; // a request that was stopped may have been on its way
const SAVED_BY = 1500; // the server saves what it had shown when it sees that the reader is gone

/**
 * What a conversation tells its owner.
 * @typedef {object} Owner
 * @property {() => void} changed something is to be drawn again
 * @property {(thread: Thread) => void} created it has an id now
 * @property {(thread: Thread) => void} described its title or status may be new
 * @property {(answering: boolean) => void} answering a turn begins or has ended
 * @property {() => void} stored a message is in the conversation
 * @property {(text: string) => void} returned a message was not stored: its text back to the person
 * @property {(name: string, data?: Record<string, unknown>) => void} effect
 * @property {(message: string) => void} failed the server told of an error
 */

/** What "Try again" does. @typedef {"answer" | "send" | "load" | null} Retry */

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
  allowCancel = true;
  /** @type {{text: string, done: boolean} | null} */
  progress = null;
  /** @type {{message: string, retry: Retry} | null} */
  error = null;
  /** @type {ReadonlyMap<string, "positive" | "negative">} */
  feedback = new Map();

  /** @type {Outgoing | null} */
  #outgoing = null;
  /** Items that were begun and not finished. @type {Set<string>} */
  #open = new Set();
  #broken = false;
  #turns = 0;
  #abort = new AbortController();
  #api;
  #owner;

  /** @param {Api} api @param {Owner} owner @param {string | null} id */
  constructor(api, owner, id) {
    this.#api = api;
    this.#owner = owner;
    this.id = id;
    this.pages = new Pages(api);
    this.actions = new Actions(api, { changed: owner.changed, receive: (event) => this.#receiveFromAction(event) });
  }

  /** Whether a message is neither stored nor given back. */
  get waiting() {
    return this.#outgoing !== null;
  }

  get lastQuestion() {
    return [...this.items].reverse().find(({ type }) => type === "user_message");
  }

  /** Whether the last message has no answer, and none is on its way. */
  get unanswered() {
    return !this.streaming && !this.waiting && this.items.at(-1)?.type === "user_message";
  }

  /** @param {Item} item */
  isOpen(item) {
    return this.streaming && this.#open.has(item.id);
  }

  /** Load the newest items and the title. */
  async load() {
    const turns = this.#turns;
    await this.#loading(async () => {
      const [thread, page] = await Promise.all([
        this.#api.ask("threads.get_by_id", { thread_id: this.id }),
        this.pages.load(this.id),
      ]);
      this.#describe(thread);
      if (this.error?.retry === "load") this.error = null;
      if (turns === this.#turns) this.items = this.pages.join(this.items, page); // else a turn has begun meanwhile
    });
  }

  async loadOlder() {
    if (this.loading || !this.pages.hasMore) return;
    await this.#loading(async () => {
      const older = await this.pages.older(this.id);
      const known = new Set(this.items.map(({ id }) => id));
      this.items = [...older.filter(({ id }) => !known.has(id)), ...this.items];
    });
  }

  /** @param {string} text */
  async send(text) {
    const outgoing = (this.#outgoing = new Outgoing(text, this.items, this.#api.now()));
    this.items = [...this.items, outgoing.item];
    if (this.id === null) await this.#turn("threads.create", { input: outgoing.input });
    else await this.#turn("threads.add_user_message", { thread_id: this.id, input: outgoing.input });
  }

  /** Answer the last message again. */
  async retry() {
    const question = this.lastQuestion;
    if (!question || this.streaming) return;
    this.items = this.items.slice(0, this.items.indexOf(question) + 1);
    await this.#turn("threads.retry_after_item", { thread_id: this.id, item_id: question.id });
  }

  stop() {
    if (this.allowCancel) this.close();
  }

  /** End what streams, even if the server does not want it to be stopped: nobody looks at it any more. */
  close() {
    this.#abort.abort();
  }

  /** @param {Action} action @param {string} [itemId] */
  act(action, itemId) {
    return this.actions.run(action, this.id, itemId);
  }

  /** @param {string} itemId @param {"positive" | "negative"} kind */
  async rate(itemId, kind) {
    const before = this.feedback;
    this.feedback = new Map([...before, [itemId, kind]]);
    this.#owner.changed();
    try {
      await this.#api.ask("items.feedback", { thread_id: this.id, item_ids: [itemId], kind });
    } catch (error) {
      this.feedback = before;
      this.#owner.changed();
      throw error;
    }
  }

  /** After the connection came back: find out what became of a message, and show what is stored. */
  async recover() {
    if (this.streaming) return;
    if (this.#outgoing) await this.#settle(this.#outgoing);
    else if (this.id) await this.load();
    if (this.#broken && this.lastQuestion) {
      this.error = { message: "The connection was lost in the middle of this answer.", retry: "answer" };
      this.#owner.changed();
      this.#loadLater();
    }
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

  /** @param {string} type @param {Record<string, unknown>} params */
  async #turn(type, params) {
    const { signal } = (this.#abort = new AbortController());
    this.#turns += 1;
    this.#open.clear();
    Object.assign(this, { streaming: true, allowCancel: true, progress: null, error: null });
    this.#owner.answering(true);
    try {
      for await (const event of this.#api.stream(type, params, signal)) this.#receive(event);
      if (!this.error && (this.#outgoing || this.#open.size)) throw new ConnectionLost(); // it ended before its end
    } catch (error) {
      if (!signal.aborted) this.#break(error);
    } finally {
      this.streaming = false;
      this.progress = null;
      this.items = this.items.filter((item) => !(this.#open.has(item.id) && isEmpty(item)));
      this.#owner.answering(false);
    }
    if (signal.aborted && this.#outgoing) await this.#settleLater(this.#outgoing);
    else if (signal.aborted || this.error) this.#loadLater();
  }

  /** @param {unknown} error */
  #break(error) {
    if (error instanceof ConnectionLost) this.#broken = true;
    else if (this.#outgoing) this.#giveBack(this.#outgoing);
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
        this.#owner.effect(event.name, event.data);
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

  /** @param {ThreadEvent} event */
  #receiveItem(event) {
    if ("item" in event) {
      if (event.type === "thread.item.added") this.#open.add(event.item.id);
      else this.#open.delete(event.item.id);
      if (this.#outgoing && event.item.type === "user_message") this.#confirm(this.#outgoing);
    } else if (event.type === "thread.item.removed") {
      this.#open.delete(event.item_id);
    }
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
  #confirm({ item }) {
    this.#outgoing = null;
    this.items = this.items.filter((other) => other !== item);
    this.#owner.stored();
  }

  /** @param {Outgoing} outgoing */
  #giveBack({ item, text }) {
    this.#outgoing = null;
    this.items = this.items.filter((other) => other !== item);
    this.#owner.returned(text);
  }

  /** @param {string | undefined} message @param {boolean} again */
  #refused(message, again) {
    const unsent = this.#outgoing;
    if (unsent) this.#giveBack(unsent); // an error before the message was confirmed: nothing was stored
    this.#fail(message, again ? (unsent ? "send" : "answer") : null);
  }

  /** @param {string | undefined} message @param {Retry} retry */
  #fail(message, retry) {
    this.error = { message: message || "Something went wrong.", retry };
    this.#owner.failed(this.error.message);
    this.#owner.changed();
  }

  /** @param {Outgoing} outgoing */
  async #settleLater(outgoing) {
    this.#owner.changed();
    await new Promise((resolve) => setTimeout(resolve, STORED_BY));
    if (this.#outgoing === outgoing) await this.#settle(outgoing);
  }

  /** Find out whether a message whose request broke off was stored. @param {Outgoing} outgoing */
  async #settle(outgoing) {
    const thread = this.id === null ? await outgoing.begun(this.#api, this.pages) : null;
    const stored = thread !== null || (this.id !== null && (await outgoing.isNewestOf(this.pages, this.id)));
    if (this.#outgoing !== outgoing) return;
    if (stored) {
      this.#confirm(outgoing);
      if (thread) this.#describe(thread);
      await this.load();
    } else {
      this.#broken = false;
      this.#giveBack(outgoing);
      this.#fail("This message was not sent.", null);
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

  #loadLater() {
    const turns = this.#turns;
    setTimeout(() => {
      if (this.id && turns === this.#turns) this.load().catch(() => {}); // what is shown stays
    }, SAVED_BY);
  }
}

/** @param {Item} item */
const isEmpty = (item) => item.type === "assistant_message" && !textOf(item);

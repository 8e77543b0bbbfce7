// @ts-check
import { ConnectionLost, HttpError } from "./protocol.js";
import { contentOf, sentOf, textOf } from "./tags.js";
/** @import {Api} from "./protocol.js" */
/** @import {Item, QueueOwner, ThreadEvent, Unread, UnreadItem} from "./types" */

const QUEUED = "todo.queued";

/** What was written while an answer runs, until the assistant reads it; what an answer left unread is unsent. */
export class Queue {
  /** @type {readonly Unread[]} */
  messages = [];
  /** Those whose request is on its way. @type {Set<string>} */
  #sending = new Set();
  #count = 0;
  #api;
  #owner;

  /** @param {Api} api @param {QueueOwner} owner */
  constructor(api, owner) {
    this.#api = api;
    this.#owner = owner;
  }

  /** Whether a request is on its way. */
  get busy() {
    return this.#sending.size > 0;
  }

  /** Let the answer that is running be followed by an answer to this. @param {string} text @param {string} threadId */
  async add(text, threadId) {
    const message = /** @type {Unread} */ ({ id: `queued-${this.#count++}`, text, state: "sending" });
    this.#set([...this.messages, message]);
    const abort = new AbortController();
    const input = { content: contentOf(text), attachments: [], inference_options: {} };
    const params = { thread_id: threadId, input };
    const events = this.#api.stream("threads.add_user_message", params, abort.signal, { while_running: "follow_up" });
    this.#sending.add(message.id);
    const first = await readFirst(events)
      .catch((error) => {
        if (error instanceof HttpError) this.#giveBack(message);
        throw error; // of a lost connection, what is loaded later tells
      })
      .finally(() => this.#sending.delete(message.id));
    if (first.type === "client_effect" && first.name === QUEUED) {
      void events.return(); // else it is waited for, and holds its connection
      const id = String(first.data?.input_id);
      const read = this.#owner.has(id); // told by the answer before we were
      this.#set(this.messages.flatMap((one) => (one !== message ? [one] : read ? [] : [{ ...one, id, state: "queued" }])));
    } else if (first.type === "error") {
      void events.return();
      this.#giveBack(message);
      this.#owner.fail(first.message);
    } else {
      this.#set(this.messages.filter((one) => one !== message));
      await this.#owner.answered(text, continued(first, events), abort); // the answer had ended: this is its own
    }
  }

  /** Let it be read before the model's next request. @param {Unread} message @param {string} threadId */
  async sendNow({ id }, threadId) {
    if (await this.#act("send_input_now", id, threadId)) this.#change(id, { state: "next" });
  }

  /** @param {string} id @param {string} threadId */
  async remove(id, threadId) {
    if (await this.#act("drop_input", id, threadId)) this.read(id);
  }

  /** It is in the conversation, or gone. @param {string} id */
  read(id) {
    if (this.messages.some((one) => one.id === id)) this.#set(this.messages.filter((one) => one.id !== id));
  }

  /**
   * The answer has ended, or waits for its person: whether something is left. With a stop it is given back, and what
   * failed reads nothing more.
   * @param {{stopped: boolean, failed: boolean}} how
   */
  ended({ stopped, failed }) {
    const left = this.messages.filter(({ state }) => state !== "unsent");
    if (stopped) for (const message of left) this.#giveBack(message);
    else if (failed) for (const { id, state } of left) if (state !== "sending") this.#change(id, { state: "unsent" });
    return left.length > 0;
  }

  /** What the server holds. @param {UnreadItem[]} unread @param {readonly Item[]} items */
  load(unread, items) {
    const lost = this.messages.filter(({ id, state }) => state === "sending" && !this.#sending.has(id));
    const held = [...unread, ...items.filter(({ type }) => type === "user_message")].map(({ content }) => sentOf(content));
    const sending = this.messages.filter((one) => one.state === "sending" && !lost.includes(one));
    this.#set([...unread.map(shown), ...sending]);
    for (const message of lost) if (!held.includes(sentOf(contentOf(message.text)))) this.#owner.returned(message.text);
  }

  /** Whether it was done. @param {string} type @param {string} id @param {string} threadId */
  async #act(type, id, threadId) {
    const params = { thread_id: threadId, action: { type, payload: { input_id: id } } };
    const events = this.#api.stream("threads.custom_action", params);
    const event = await readFirst(events);
    void events.return();
    if (event.type === "error") this.#owner.fail(event.message);
    return event.type === "client_effect";
  }

  /** @param {Unread} message */
  #giveBack(message) {
    this.#set(this.messages.filter((one) => one !== message));
    this.#owner.returned(message.text);
  }

  /** @param {string} id @param {Partial<Unread>} change */
  #change(id, change) {
    this.#set(this.messages.map((one) => (one.id === id ? { ...one, ...change } : one)));
  }

  /** @param {Unread[]} messages */
  #set(messages) {
    this.messages = messages;
    this.#owner.changed();
  }
}

/** The first event that says what became of a request. @param {AsyncGenerator<ThreadEvent, void>} events */
async function readFirst(events) {
  for (;;) {
    const { value } = await events.next();
    if (!value) throw new ConnectionLost();
    if (value.type !== "progress_update") return value;
  }
}

/** @param {ThreadEvent} first @param {AsyncGenerator<ThreadEvent, void>} others @returns {AsyncGenerator<ThreadEvent, void>} */
async function* continued(first, others) {
  yield first;
  yield* others;
}

/** @param {UnreadItem} item @returns {Unread} */
const shown = (item) => ({
  id: item.id,
  text: textOf(item),
  state: !item.is_queued ? "unsent" : item.mode === "steer" ? "next" : "queued",
});

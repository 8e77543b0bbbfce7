// @ts-check
import { HttpError, interactionPath } from "./protocol.js";
import { contentFrom, contentOf, partsOf, sentOf, textOf } from "./tags.js";
/** @import {Api} from "./protocol.js" */
/** @import {Item, QueueOwner, Unread, UnreadMessage} from "./types" */

const ENDED = 409;

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
    this.#sending.add(message.id);
    const queued = await this.#send(text, threadId)
      .catch((error) => {
        if (error instanceof HttpError) this.#giveBack(message);
        throw error; // of a lost connection, what is loaded later tells
      })
      .finally(() => this.#sending.delete(message.id));
    if (queued) {
      const read = this.#owner.has(queued.id); // told by the answer before we were
      this.#set(this.messages.flatMap((one) => (one !== message ? [one] : read ? [] : [{ ...one, ...queued, state: "queued" }])));
    } else if (this.messages.includes(message)) { // else it was given back
      this.#set(this.messages.filter((one) => one !== message));
      await this.#owner.send(text);
    }
  }

  /** Let it be read before the model's next request. @param {Unread} message @param {string} threadId */
  async sendNow({ id, interaction }, threadId) {
    await this.#api.json(`${messagesPath(threadId, interaction)}/${id}/steer`, {});
    this.#change(id, { state: "next" });
  }

  /** @param {string} id @param {string} threadId */
  async remove(id, threadId) {
    const message = this.messages.find((one) => one.id === id);
    if (!message) return;
    await this.#api.json(`${messagesPath(threadId, message.interaction)}/${id}`, undefined, "DELETE");
    this.read(id);
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

  /** What the server holds. @param {UnreadMessage[]} unread @param {readonly Item[]} items */
  load(unread, items) {
    const lost = this.messages.filter(({ id, state }) => state === "sending" && !this.#sending.has(id));
    const messages = items.filter(({ type }) => type === "user_message");
    const held = [...unread.map(({ parts }) => contentFrom(parts)), ...messages.map(({ content }) => content)].map(sentOf);
    const sending = this.messages.filter((one) => one.state === "sending" && !lost.includes(one));
    this.#set([...unread.map(shown), ...sending]);
    for (const message of lost) if (!held.includes(sentOf(contentOf(message.text)))) this.#owner.returned(message.text);
  }

  /**
   * Send it to the interaction that answers, or to the one after it. Null: nothing is being answered any more.
   * @param {string} text @param {string} threadId
   */
  async #send(text, threadId) {
    const body = { text: partsOf(text), mode: "follow_up" };
    let interaction = await this.#owner.interaction();
    while (interaction) {
      try {
        const { input_id: id } = await this.#api.json(messagesPath(threadId, interaction), body);
        return { id: String(id), interaction };
      } catch (error) {
        if (!(error instanceof HttpError && error.status === ENDED)) throw error;
        interaction = await this.#owner.interaction(interaction);
      }
    }
    return null;
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

/** @param {string} threadId @param {string | undefined} interaction */
const messagesPath = (threadId, interaction = "") => `${interactionPath(threadId, interaction)}/messages`;

/** @param {UnreadMessage} message @returns {Unread} */
const shown = ({ input_id: id, interaction_id: interaction, parts, mode, is_queued: queued }) => ({
  id,
  interaction,
  text: textOf({ content: contentFrom(parts) }),
  state: !queued ? "unsent" : mode === "steer" ? "next" : "queued",
});

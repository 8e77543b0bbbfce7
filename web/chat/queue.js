// @ts-check
import { HttpError, interactionPath } from "./protocol.js";
import { contentFrom, contentOf, partsOf, sentOf, textOf } from "./tags.js";
/** @import {Api} from "./protocol.js" */
/** @import {Item, QueueOwner, Unread, UnreadMessage} from "./types" */

const ENDED = 409; // status

/** Messages that wait for a running answer. Messages that an answer has not read are unsent. */
export class Queue {
  /** @type {readonly Unread[]} */
  messages = [];
  /** Messages that are being sent. @type {Set<string>} */
  #sending = new Set();
  #count = 0;
  #api;
  #owner;

  /** @param {Api} api @param {QueueOwner} owner */
  constructor(api, owner) {
    this.#api = api;
    this.#owner = owner;
  }

  /** Whether a message is being sent. */
  get busy() {
    return this.#sending.size > 0;
  }

  /** Sends a message that is answered after the running answer. @param {string} text @param {string} threadId */
  async add(text, threadId) {
    const message = /** @type {Unread} */ ({ id: `queued-${this.#count++}`, text, state: "sending" });
    this.#set([...this.messages, message]);
    this.#sending.add(message.id);
    const queued = await this.#send(text, threadId)
      .catch((error) => {
        if (error instanceof HttpError) this.#returnText(message);
        throw error; // after a lost connection, loading shows the result
      })
      .finally(() => this.#sending.delete(message.id));
    if (queued) {
      const read = this.#owner.has(queued.id); // the stream was faster than the response
      this.#set(this.messages.flatMap((one) => (one !== message ? [one] : read ? [] : [{ ...one, ...queued, state: "queued" }])));
    } else if (this.messages.includes(message)) { // otherwise it was returned to the composer
      this.#set(this.messages.filter((one) => one !== message));
      await this.#owner.send(text);
    }
  }

  /** Lets the model read the message with its next request. @param {Unread} message @param {string} threadId */
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

  /** Removes a message that was read or deleted. @param {string} id */
  read(id) {
    if (this.messages.some((one) => one.id === id)) this.#set(this.messages.filter((one) => one.id !== id));
  }

  /**
   * Handles the end of an answer; returns whether messages are left. After a stop they return to the composer, after a
   * failure they are unsent.
   * @param {{stopped: boolean, failed: boolean}} how
   */
  ended({ stopped, failed }) {
    const left = this.messages.filter(({ state }) => state !== "unsent");
    if (stopped) for (const message of left) this.#returnText(message);
    else if (failed) for (const { id, state } of left) if (state !== "sending") this.#change(id, { state: "unsent" });
    return left.length > 0;
  }

  /** Takes over the messages that the server has. @param {UnreadMessage[]} unread @param {readonly Item[]} items */
  load(unread, items) {
    const lost = this.messages.filter(({ id, state }) => state === "sending" && !this.#sending.has(id));
    const messages = items.filter(({ type }) => type === "user_message");
    const held = [...unread.map(({ parts }) => contentFrom(parts)), ...messages.map(({ content }) => content)].map(sentOf);
    const sending = this.messages.filter((one) => one.state === "sending" && !lost.includes(one));
    this.#set([...unread.map(shown), ...sending]);
    for (const message of lost) if (!held.includes(sentOf(contentOf(message.text)))) this.#owner.returned(message.text);
  }

  /**
   * Sends a message to the running interaction or the next one; null without one.
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
  #returnText(message) {
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

// @ts-check
import { isOld } from "./outgoing.js";
import { HttpError, interactionPath } from "./protocol.js";
import { contentFrom, partsOf, textOf } from "./tags.js";
/** @import {Conversation} from "./conversation.js" */
/** @import {Outgoing} from "./outgoing.js" */
/** @import {Api} from "./protocol.js" */
/** @import {Unread, UnreadMessage} from "./types" */

const ENDED = [404, 409]; // status: the interaction takes no messages any more

/**
 * Messages that wait for a running answer. Those that it has not read, as it failed or was interrupted, go to the outbox, which
 * sends them again. The user is asked about old ones, which stay here as unsent.
 */
export class Queue {
  /** @type {readonly Unread[]} */
  messages = [];
  /** Ids of old messages that the user sends again. @type {Set<string>} */
  #approved = new Set();
  /** Ids of messages that are being deleted. @type {Set<string>} */
  #dropped = new Set();
  #api;
  #conversation;

  /** @param {Api} api @param {Conversation} conversation */
  constructor(api, conversation) {
    this.#api = api;
    this.#conversation = conversation;
  }

  /** Sends a message that is answered after the running answer; returns whether there is one. @param {Outgoing} outgoing */
  async add(outgoing) {
    const queued = await this.#send(outgoing);
    if (!queued) return false;
    const { text } = outgoing.message;
    const known = [...this.#conversation.items, ...this.messages].some(({ id }) => id === queued.id); // the stream was faster than the response
    if (!known) this.#set([...this.messages, { text, ...queued, at: Date.now(), state: "queued" }]);
    return true;
  }

  /** Lets the model read the message with its next request. @param {Unread} message */
  async sendNow({ id, interaction }) {
    await this.#api.json(`${this.#path(interaction)}/${id}/steer`, {});
    this.#change(id, { state: "next" });
  }

  /** Lets an old message be sent again. @param {Unread} message */
  sendAgain(message) {
    this.#approved.add(message.id);
    this.#handOver([message]);
  }

  /** @param {Unread} message */
  async remove({ id, interaction }) {
    await this.#api.json(`${this.#path(interaction)}/${id}`, undefined, "DELETE");
    this.read(id);
  }

  /** Deletes a message that the outbox had taken over; if that fails, it is sent again, which is harmless. @param {Unread} message */
  async drop(message) {
    this.#dropped.add(message.id);
    await this.remove(message).catch(() => this.#dropped.delete(message.id));
  }

  /** Removes a message that was read or deleted. @param {string} id */
  read(id) {
    if (this.messages.some((one) => one.id === id)) this.#set(this.messages.filter((one) => one.id !== id));
  }

  /**
   * Handles the end of an answer; returns whether messages are left. After a stop they return to the composer, after a
   * failure they are sent again.
   * @param {{stopped: boolean, failed: boolean}} how
   */
  ended({ stopped, failed }) {
    const left = this.messages.filter(({ state }) => state !== "unsent");
    if (stopped) for (const message of left) this.#returnText(message);
    else if (failed) this.#handOver(left);
    return left.length > 0;
  }

  /** Takes over the messages that the server has. @param {UnreadMessage[]} unread */
  load(unread) {
    const messages = unread.map(shown).filter(({ id }) => !this.#dropped.has(id));
    const sentAgain = messages.filter(({ id, state, at }) => state === "unsent" && (this.#approved.has(id) || !isOld(at)));
    this.#conversation.outbox.adopt(sentAgain);
    this.#set(messages.filter((message) => !sentAgain.includes(message)));
  }

  /** Sends a message to the running interaction or the next one; null without one. @param {Outgoing} outgoing */
  async #send(outgoing) {
    const body = { text: partsOf(outgoing.message.content), mode: "follow_up" };
    let interaction = outgoing.message.run ?? (await this.#conversation.answeringRun());
    while (interaction) {
      await this.#storeRun(outgoing, interaction);
      try {
        const { input_id: id } = await this.#api.json(this.#path(interaction), body, "POST", outgoing.key);
        return { id: String(id), interaction };
      } catch (error) {
        if (!(error instanceof HttpError && ENDED.includes(error.status))) throw error;
        interaction = await this.#conversation.answeringRun(interaction);
      }
    }
    await this.#storeRun(outgoing, undefined);
    return null;
  }

  /** Stores to which run a message is sent. @param {Outgoing} outgoing @param {string | undefined} run */
  #storeRun(outgoing, run) {
    outgoing.message = { ...outgoing.message, run };
    return this.#conversation.outbox.save(outgoing);
  }

  /** @param {string} interaction */
  #path(interaction) {
    return `${interactionPath(String(this.#conversation.id), interaction)}/messages`;
  }

  /** @param {Unread} message */
  #returnText(message) {
    this.#set(this.messages.filter((one) => one !== message));
    this.#conversation.giveBack(message.text);
  }

  /** @param {string} id @param {Partial<Unread>} change */
  #change(id, change) {
    this.#set(this.messages.map((one) => (one.id === id ? { ...one, ...change } : one)));
  }

  /** Lets the outbox send messages again. @param {readonly Unread[]} messages */
  #handOver(messages) {
    const { outbox } = this.#conversation;
    outbox.adopt([...outbox.unread, ...messages]);
    this.#set(this.messages.filter((message) => !messages.includes(message)));
  }

  /** @param {readonly Unread[]} messages */
  #set(messages) {
    this.messages = messages;
    this.#conversation.queueChanged();
  }
}

/** @param {UnreadMessage} message @returns {Unread} */
const shown = ({ input_id: id, interaction_id: interaction, parts, mode, is_queued: queued, created_at: at }) => ({
  id,
  interaction,
  text: textOf({ content: contentFrom(parts) }),
  at: Date.parse(at),
  state: !queued ? "unsent" : mode === "steer" ? "next" : "queued",
});

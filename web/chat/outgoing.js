// @ts-check
import { newKey } from "../http.js";
import { contentOf } from "./tags.js";
/** @import {Row, Unsaved} from "../unsaved.js" */
/** @import {Content, Item, Unread} from "./types" */

const PREFIX = "message/";
const KNOWN = 8 * 24 * 3600 * 1000; // ms for which the server knows an idempotency key

/** Whether the server may no longer know the key of a message, which could then be stored twice. The clock may have been set back. @param {number} at in ms */
export const isOld = (at) => Math.abs(Date.now() - at) > KNOWN;

/**
 * A message as it is stored until the server has confirmed it. `group` is what the messages of a conversation have in common
 * before it has an id. `edits`: the message that it replaces. `run`: the run to which it was sent as a follow-up. `creates`: it
 * was sent to begin the conversation, and a repeated request must be the same.
 * @typedef {{conversation: string | null, group: string, text: string, content: Content[], metadata?: object | undefined, edits?: string | undefined, run?: string | undefined, creates?: boolean}} Message
 */
/** @typedef {Pick<Message, "metadata" | "edits">} More */

/** A message that is not confirmed. Its key makes a repeated request harmless. */
export class Outgoing {
  /** Whether it may have reached the server. */
  tried = false;
  /** If it is rejected because an answer runs, it waits for that answer. */
  waits = false;
  /** While an edit is sent: the items to restore if it is not stored. @type {readonly Item[] | null} */
  replaced = null;
  #unsaved;

  /**
   * @param {string} key @param {Message} message @param {number} at in ms @param {Unsaved} unsaved
   * @param {Unread | null} unread what the server has of it, which stores it until it is sent again
   */
  constructor(key, message, at, unsaved, unread = null) {
    this.#unsaved = unsaved;
    this.unread = unread;
    this.key = key;
    this.message = message;
    this.at = at;
  }

  /** Whether it is sent only if the user says so. Of those that the server has, the queue asks. */
  get old() {
    return !this.unread && (this.isEarlier || isOld(this.at));
  }

  /** Whether it was written before the user signed in, perhaps by somebody else. */
  get isEarlier() {
    return this.#unsaved.isEarlier(PREFIX + this.key);
  }

  get input() {
    return { content: this.message.content, attachments: [], inference_options: {} };
  }
}

/** The messages of a conversation that are not confirmed, in order, each a row of what is not saved. */
export class Outbox {
  /** @type {readonly Outgoing[]} */
  messages = [];
  group = newKey();
  #unsaved;

  /** @param {Unsaved} unsaved */
  constructor(unsaved) {
    this.#unsaved = unsaved;
  }

  /** The next message to send; an old one is only sent again by the user. */
  get next() {
    return this.messages.find(({ old }) => !old);
  }

  /** @param {string} text @param {string | null} conversation @param {More} more */
  add(text, conversation, more) {
    const message = { ...more, conversation, group: this.group, text, content: contentOf(text) };
    const outgoing = new Outgoing(newKey(), message, Date.now(), this.#unsaved);
    this.messages = [...this.messages, outgoing];
    return this.save(outgoing);
  }

  /** Takes over stored messages. @param {readonly Row[]} rows */
  restore(rows) {
    const known = new Set(this.messages.map(({ key }) => key));
    const added = rows.map(({ key, value, at }) => new Outgoing(key.slice(PREFIX.length), value, at, this.#unsaved)).filter(({ key }) => !known.has(key));
    for (const outgoing of added) Object.assign(outgoing, { tried: true });
    this.group = added[0]?.message.group ?? this.group;
    const written = [...this.messages.filter(({ unread }) => !unread), ...added].sort((one, other) => one.at - other.at);
    this.messages = [...this.messages.filter(({ unread }) => unread), ...written];
  }

  /**
   * Takes over the messages that the server has and will not answer, before all others, which were written later. Their keys
   * are the same in all tabs, so that each is sent once.
   * @param {readonly Unread[]} unread all that there are
   */
  adopt(unread) {
    const known = new Map(this.messages.map((outgoing) => [outgoing.key, outgoing]));
    const adopted = unread.map((one) => known.get(`unread-${one.id}`) ?? this.#adopt(one));
    this.messages = [...adopted, ...this.messages.filter((outgoing) => !outgoing.unread)];
  }

  /** @param {Unread} unread */
  #adopt(unread) {
    const { id, text, at } = unread;
    const message = { conversation: null, group: this.group, text, content: contentOf(text) }; // these two are for storing it
    const outgoing = new Outgoing(`unread-${id}`, message, at, this.#unsaved, unread);
    return Object.assign(outgoing, { tried: true }); // perhaps by another tab
  }

  /** The messages that were taken over. */
  get unread() {
    return this.messages.flatMap(({ unread }) => unread ?? []);
  }

  /** Stores a message as it is now. @param {Outgoing} outgoing */
  async save({ key, message, unread }) {
    if (unread) return;
    this.#unsaved.set(PREFIX + key, message);
    await this.#unsaved.flush();
  }

  /** @param {Outgoing} outgoing */
  remove(outgoing) {
    this.messages = this.messages.filter((other) => other !== outgoing);
    this.#unsaved.delete(PREFIX + outgoing.key);
    void this.#unsaved.flush();
  }

  /** Forgets messages that were discarded elsewhere. */
  dropDiscarded() {
    this.messages = this.messages.filter(({ key, unread }) => unread || this.#unsaved.get(PREFIX + key));
  }

  /** Names the conversation, which has an id now. @param {string} id */
  nameConversation(id) {
    for (const outgoing of this.messages) {
      outgoing.message = { ...outgoing.message, conversation: id };
      void this.save(outgoing);
    }
  }
}

/** Returns the stored messages by conversation, the oldest first. @param {Unsaved} unsaved @returns {Iterable<[Message, Row[]]>} */
export function storedMessages(unsaved) {
  /** @type {Map<string, [Message, Row[]]>} */
  const groups = new Map();
  for (const row of unsaved.rows(PREFIX)) {
    if (!isMessage(row.value)) {
      unsaved.delete(row.key);
      continue;
    }
    const name = row.value.conversation ?? row.value.group;
    const [, rows] = groups.get(name) ?? [];
    if (rows) rows.push(row);
    else groups.set(name, [row.value, [row]]);
  }
  return groups.values();
}

/** Whether a stored value is a message. @param {any} value */
function isMessage(value) {
  const { conversation, group, text, content, metadata, edits, run, unsent } = Object(value);
  const isText = (/** @type {unknown} */ one) => typeof one === "string";
  return (
    (conversation === null || isText(conversation)) && isText(group) && isText(text) && Array.isArray(content) &&
    content.every((part) => isText(part?.type) && isText(part.text)) && (metadata === undefined || Object(metadata) === metadata) &&
    [edits, run].every((one) => one === undefined || isText(one)) &&
    unsent === undefined // pages of an earlier version stored these, though the server has them
  );
}

// @ts-check
import { HttpError, chatPath } from "./protocol.js";
import { contentOf, sentOf } from "./tags.js";
/** @import {Pages} from "./pages.js" */
/** @import {Api} from "./protocol.js" */
/** @import {Item, Thread} from "./types" */

const CLOCK = 2000; // ms: the server's time is told in whole seconds

/** A message on its way, and how to recognise it should the answer to its request be lost. */
export class Outgoing {
  /** Of one that stands in the place of another: the items that are shown again if it is not stored. @type {readonly Item[] | null} */
  replaced = null;

  /**
   * @param {string} text
   * @param {readonly Item[]} items the conversation before it
   * @param {number} sentAt in the server's time
   */
  constructor(text, items, sentAt) {
    this.text = text;
    this.sentAt = sentAt;
    /** The unsent message that it is. @type {string | undefined} */
    this.unsent = undefined;
    this.known = new Set(items.map(({ id }) => id));
    /** @type {Item} */
    this.item = { id: `outgoing-${items.length}-${sentAt}`, type: "user_message", content: contentOf(text) };
  }

  get input() {
    return { content: this.item.content, attachments: [], inference_options: {} };
  }

  /**
   * The conversation that holds this message, null where none does.
   * @param {Api} api
   * @param {Pages} pages
   * @param {string | null} threadId null: the message was to begin one
   * @returns {Promise<Thread | null>}
   */
  async stored(api, pages, threadId) {
    const thread = threadId === null ? await this.#newest(api) : await found(api.json(`${chatPath(threadId)}?limit=0`));
    const page = thread && (await found(pages.load(thread.id)));
    const message = page?.data.findLast((/** @type {Item} */ { type }) => type === "user_message");
    return message && !this.known.has(message.id) && sentOf(message.content) === sentOf(this.item.content) ? thread : null;
  }

  /** The newest conversation, if it was begun after this message. @param {Api} api @returns {Promise<Thread | null>} */
  async #newest(api) {
    /** @type {{chats: Thread[]}} */
    const { chats } = await api.json("/chats?limit=1");
    const [newest] = chats;
    return newest && Date.parse(newest.created_at) >= this.sentAt - CLOCK ? newest : null;
  }
}

/** @param {Promise<any>} reply null: what was asked for is not there */
const found = (reply) =>
  reply.catch((error) => {
    if (error instanceof HttpError && error.status === 404) return null;
    throw error;
  });

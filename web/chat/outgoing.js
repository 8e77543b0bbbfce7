// @ts-check
import { HttpError, chatPath } from "./protocol.js";
import { contentOf, sentOf } from "./tags.js";
/** @import {Pages} from "./pages.js" */
/** @import {Api} from "./protocol.js" */
/** @import {Item, Thread} from "./types" */

const CLOCK = 2000; // ms: the server's clock has whole seconds

/** A message that is being sent, and how to find it if the response is lost. */
export class Outgoing {
  /** If it replaces a message: the items to restore if it is not stored. @type {readonly Item[] | null} */
  replaced = null;

  /**
   * @param {string} text
   * @param {readonly Item[]} items the conversation before it
   * @param {number} sentAt in the server's time
   */
  constructor(text, items, sentAt) {
    this.text = text;
    this.sentAt = sentAt;
    /** The id of the unsent message that is sent again. @type {string | undefined} */
    this.unsent = undefined;
    this.known = new Set(items.map(({ id }) => id));
    /** @type {Item} */
    this.item = { id: `outgoing-${items.length}-${sentAt}`, type: "user_message", content: contentOf(text) };
  }

  get input() {
    return { content: this.item.content, attachments: [], inference_options: {} };
  }

  /**
   * Returns the conversation with this message; null if it was not stored.
   * @param {Api} api
   * @param {Pages} pages
   * @param {string | null} threadId null: the message begins a conversation
   * @returns {Promise<Thread | null>}
   */
  async stored(api, pages, threadId) {
    const thread = threadId === null ? await this.#newest(api) : await nullIfMissing(api.json(`${chatPath(threadId)}?limit=0`));
    const page = thread && (await nullIfMissing(pages.load(thread.id)));
    const message = page?.data.findLast((/** @type {Item} */ { type }) => type === "user_message");
    return message && !this.known.has(message.id) && sentOf(message.content) === sentOf(this.item.content) ? thread : null;
  }

  /** Returns the newest conversation if it is newer than this message. @param {Api} api @returns {Promise<Thread | null>} */
  async #newest(api) {
    /** @type {{chats: Thread[]}} */
    const { chats } = await api.json("/chats?limit=1");
    const [newest] = chats;
    return newest && Date.parse(newest.created_at) >= this.sentAt - CLOCK ? newest : null;
  }
}

/** @param {Promise<any>} reply null if it does not exist */
const nullIfMissing = (reply) =>
  reply.catch((error) => {
    if (error instanceof HttpError && error.status === 404) return null;
    throw error;
  });

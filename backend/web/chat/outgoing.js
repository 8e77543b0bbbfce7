// @ts-check
import { HttpError } from "./protocol.js";
/** @import {Pages} from "./pages.js" */
/** @import {Api} from "./protocol.js" */
/** @import {Item, Thread} from "./types" */

const CLOCK = 2000; // ms: the server's time is told in whole seconds

/** A message on its way, and how to recognise it should the answer to its request be lost. */
export class Outgoing {
  /**
   * @param {string} text
   * @param {readonly Item[]} items the conversation before it
   * @param {number} sentAt in the server's time
   */
  constructor(text, items, sentAt) {
    this.text = text;
    this.sentAt = sentAt;
    this.known = new Set(items.map(({ id }) => id));
    /** @type {Item} */
    this.item = { id: `outgoing-${items.length}-${sentAt}`, type: "user_message", content: [{ type: "input_text", text }] };
  }

  get input() {
    return { content: this.item.content, attachments: [], inference_options: {} };
  }

  /** Whether a conversation's newest message is this one. @param {Pages} pages @param {string} threadId */
  async isNewestOf(pages, threadId) {
    const { data } = await pages.load(threadId).catch((error) => {
      if (error instanceof HttpError && error.status === 404) return { data: [] };
      throw error;
    });
    const newest = data.reverse().find(({ type }) => type === "user_message");
    return newest !== undefined && !this.known.has(newest.id) && textOf(newest) === this.text;
  }

  /**
   * The conversation that this message began.
   * @param {Api} api
   * @param {Pages} pages
   * @returns {Promise<Thread | null>}
   */
  async begun(api, pages) {
    /** @type {{data: Thread[]}} */
    const { data } = await api.ask("threads.list", { limit: 1, order: "desc" });
    const [newest] = data;
    if (!newest || Date.parse(newest.created_at) < this.sentAt - CLOCK) return null;
    return (await this.isNewestOf(pages, newest.id)) ? newest : null;
  }
}

/** The text of a message, as it was written. @param {Item} item */
export const textOf = (item) => (item.content ?? []).map(({ text }) => text).join("");

// @ts-check
/** @import {Api} from "./protocol.js" */
/** @import {Item, Page} from "./types" */

const SIZE = 20; // items of a page

/** Loads a conversation's items page by page, the newest first. */
export class Pages {
  hasMore = false;
  /** @type {string | null} */
  #after = null;
  #api;

  /** @param {Api} api */
  constructor(api) {
    this.#api = api;
  }

  /**
   * Returns the newest items, the oldest first. A page may be empty although there are more.
   * @param {string | null} threadId
   * @param {string | null} after
   * @returns {Promise<Page<Item>>}
   */
  async load(threadId, after = null) {
    /** @type {Page<Item>} */
    const page = await this.#api.ask("items.list", {
      thread_id: threadId,
      limit: SIZE,
      order: "desc",
      ...(after && { after }),
    });
    if (page.data.length === 0 && page.has_more && page.after) return this.load(threadId, page.after);
    return { ...page, data: page.data.reverse() };
  }

  /**
   * Joins the older shown items and the newest page.
   * @param {readonly Item[]} items
   * @param {Page<Item>} page
   */
  join(items, page) {
    const overlap = items.findIndex(({ id }) => id === page.data[0]?.id);
    if (overlap < 0) this.#reached(page);
    return [...items.slice(0, Math.max(overlap, 0)), ...page.data];
  }

  /** Returns the next older page. @param {string | null} threadId */
  older(threadId) {
    return this.load(threadId, this.#after);
  }

  /** @param {Page<Item>} page an older one @param {readonly Item[]} items */
  prepend(page, items) {
    this.#reached(page);
    const known = new Set(items.map(({ id }) => id));
    return [...page.data.filter(({ id }) => !known.has(id)), ...items];
  }

  /** @param {Page<Item>} page */
  #reached(page) {
    this.hasMore = page.has_more;
    this.#after = page.after ?? null;
  }
}

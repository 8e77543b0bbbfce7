// @ts-check
/** @import {Api} from "./protocol.js" */
/** @import {Thread} from "./types" */

const PAGE = 20; // conversations
const MAX_PAGE = 100;

/** The list of conversations. */
export class History {
  /** @type {readonly Thread[]} */
  threads = [];
  hasMore = false;
  loaded = false;
  /** The searched part of titles; empty for all. */
  titled = "";
  /** @type {string | null} */
  #after = null;
  /** @type {Promise<void> | null} the page on its way */
  #older = null;
  #api;

  /** @param {Api} api */
  constructor(api) {
    this.#api = api;
  }

  /** Loads the newest conversations, as many as before. */
  async load() {
    const limit = Math.min(MAX_PAGE, Math.max(PAGE, this.threads.length));
    await this.#page(limit, null, (page) => (this.threads = page));
    this.loaded = true;
  }

  /** Loads the conversations with this text in their title. @param {string} text */
  async search(text) {
    this.titled = text;
    await this.#page(PAGE, null, (page) => (this.threads = page));
  }

  /** Loads one more page; simultaneous calls load the same page. */
  more() {
    this.#older ??= this.#loadOlder().finally(() => (this.#older = null));
    return this.#older;
  }

  async #loadOlder() {
    await this.#page(PAGE, this.#after, (older) => {
      const known = new Set(this.threads.map(({ id }) => id));
      this.threads = [...this.threads, ...older.filter(({ id }) => !known.has(id))];
    });
  }

  /** @param {Thread} thread a new one */
  put(thread) {
    if (this.titled) return;
    this.threads = [thread, ...this.threads.filter(({ id }) => id !== thread.id)];
  }

  /** @param {Pick<Thread, "id"> & Partial<Thread>} thread */
  update(thread) {
    this.threads = this.threads.map((old) => (old.id === thread.id ? { ...old, ...thread } : old));
  }

  /** @param {Thread} thread @param {string} title */
  async rename(thread, title) {
    this.update(await this.#api.ask("threads.update", { thread_id: thread.id, title }));
  }

  /** @param {Thread} thread */
  async remove(thread) {
    await this.#api.ask("threads.delete", { thread_id: thread.id });
    this.threads = this.threads.filter(({ id }) => id !== thread.id);
  }

  /**
   * Drops a page if the search has changed.
   * @param {number} limit @param {string | null} after @param {(threads: Thread[]) => void} take
   */
  async #page(limit, after, take) {
    const { titled } = this;
    const query = new URLSearchParams({ limit: String(limit), titled, ...(after && { after }) });
    /** @type {{chats: Thread[], has_more: boolean, after: string | null}} */
    const page = await this.#api.json(`chats?${query}`);
    if (titled !== this.titled) return;
    this.hasMore = page.has_more;
    this.#after = page.after;
    take(page.chats);
  }
}

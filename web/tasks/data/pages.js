// @ts-check
/** @import {Api} from "./api.js" */
/** @import {DoneOnDay, Filter, Task, TaskPage, View} from "../types" */

/** Tasks that were loaded together, and the cursor before them. @typedef {{cursor: string | null, tasks: Task[], stale: boolean}} Part */
/** The first and the last visible task, counted from 0. @typedef {[first: number, last: number]} Seen */

const FEW = 3; // so many parts are loaded again as a whole
const NOTHING = /** @type {Filter} */ ({ query: "", label: "", priority: "" });

/** The loaded parts of a view, in order; each can be loaded again by itself. */
export class Pages {
  /** @type {View} */
  view = "today";
  filter = NOTHING;
  /** Whether the view and the filter are loaded. */
  current = false;
  total = 0;
  /** @type {DoneOnDay[]} */
  days = [];
  /** The newest change that all parts contain. */
  last = 0;
  busy = false;
  /** @type {Part[]} */
  #parts = [];
  /** The cursor of the next part, null at the end. @type {string | null} */
  #next = null;
  /** @type {Task[] | null} */
  #tasks = null;
  #generation = 0;
  #queue = Promise.resolve();
  #api;
  #onPage;

  /** @param {Api} api @param {(page: TaskPage) => void} onPage */
  constructor(api, onPage) {
    this.#api = api;
    this.#onPage = onPage;
  }

  get tasks() {
    return (this.#tasks ??= this.#parts.flatMap(({ tasks }) => tasks));
  }

  get hasMore() {
    return this.#next !== null;
  }

  get filtered() {
    return Object.values(this.filter).some(Boolean);
  }

  /** Loads a view with a filter; of the same view, the old tasks are shown until then. @param {View} view @param {Filter} filter */
  async begin(view, filter) {
    if (view !== this.view) this.#replace([], null);
    this.view = view;
    this.filter = filter;
    this.current = false;
    this.#generation++;
    await this.#enqueue(async () => {
      const { parts, next } = await this.#read(null, 1);
      this.#replace(parts, next);
      this.current = true;
    });
  }

  /** Loads the next tasks. */
  async more() {
    if (!this.current || this.#next === null) return;
    await this.#enqueue(async () => {
      const cursor = this.#next;
      if (cursor === null) return;
      const known = new Set(this.tasks.map(({ id }) => id));
      const { parts, next } = await this.#read(cursor, 1);
      const fresh = parts.map((part) => ({ ...part, tasks: part.tasks.filter(({ id }) => !known.has(id)) }));
      this.#replace([...this.#parts, ...fresh], next);
    });
  }

  /** Loads the visible tasks again, and the others once they are scrolled to. @param {Seen} seen @param {number[]} [changed] */
  async refresh(seen, changed = []) {
    if (!this.current) return this.begin(this.view, this.filter);
    await this.#enqueue(async () => {
      const few = this.#parts.length <= FEW;
      const first = few ? 0 : this.#partAt(seen[0]);
      const last = few ? this.#parts.length : this.#partAt(seen[1]) + 1;
      const wanted = this.#parts.slice(first, last).reduce((count, { tasks }) => count + tasks.length, 0);
      const { parts, next } = await this.#read(this.#parts[first]?.cursor ?? null, wanted);
      const elsewhere = new Set([...changed, ...parts.flatMap(({ tasks }) => tasks.map(({ id }) => id))]);
      const above = this.#parts.slice(0, first).map(({ cursor, tasks }) => ({
        cursor,
        stale: true,
        tasks: tasks.filter(({ id }) => !elsewhere.has(id)),
      }));
      this.#replace([...above, ...parts], next);
    });
  }

  /** Returns the first visible part that may have changed; null without one, or while loading. @param {Seen} seen */
  staleIn(seen) {
    if (this.busy || !this.#parts.some(({ stale }) => stale)) return null;
    const last = this.#partAt(seen[1]);
    const at = this.#parts.findIndex(({ stale }, index) => stale && index >= this.#partAt(seen[0]) && index <= last);
    return at < 0 ? null : at;
  }

  /** Loads a part again. @param {number} at */
  async reload(at) {
    await this.#enqueue(async () => {
      if (!this.#parts[at]?.stale) return;
      const after = this.#parts.slice(at + 1);
      const following = new Set(after.flatMap(({ tasks }) => tasks.map(({ id }) => id)));
      const { parts, next } = await this.#read(this.#parts[at].cursor, this.#parts[at].tasks.length + 1);
      const tasks = parts.flatMap((part) => part.tasks);
      const meets = tasks.findIndex(({ id }) => following.has(id));
      const above = this.#parts.slice(0, at);
      if (meets < 0 && next !== null) this.#replace([...above, ...parts], next);
      else this.#replace([...above, { ...parts[0], tasks: tasks.slice(0, meets < 0 ? undefined : meets) }, ...after], this.#next);
    });
  }

  /** @param {Part[]} parts @param {string | null} next */
  #replace(parts, next) {
    this.#parts = parts;
    this.#next = next;
    this.#tasks = null;
  }

  /** Returns the index of the part with this task. @param {number} index */
  #partAt(index) {
    let end = 0;
    const at = this.#parts.findIndex(({ tasks }) => (end += tasks.length) > index);
    return at < 0 ? Math.max(0, this.#parts.length - 1) : at;
  }

  /** Runs one load after the other; loads of another view are dropped. @param {() => Promise<void>} work */
  #enqueue(work) {
    const generation = this.#generation;
    const turn = this.#queue.then(async () => {
      if (generation !== this.#generation) return;
      this.busy = true;
      try {
        await work();
      } catch (error) {
        if (!(error instanceof Outdated)) throw error;
      } finally {
        this.busy = false;
      }
    });
    this.#queue = turn.catch(() => {});
    return turn;
  }

  /** Loads at least so many tasks, or all. @param {string | null} cursor @param {number} wanted */
  async #read(cursor, wanted) {
    const generation = this.#generation;
    /** @type {Part[]} */
    const parts = [];
    /** @type {string | null} */
    let next = cursor;
    for (let count = 0; parts.length === 0 || (next !== null && count < wanted); ) {
      const page = await this.#api.page(this.view, this.filter, next);
      if (generation !== this.#generation) throw new Outdated();
      parts.push({ cursor: next, tasks: page.tasks, stale: false });
      count += page.tasks.length;
      if (next === null && page.days) this.days = page.days;
      next = page.next_cursor;
      this.total = page.total;
      this.#onPage(page);
    }
    return { parts, next };
  }
}

class Outdated extends Error {}

// @ts-check
/** @import {Api} from "./api.js" */
/** @import {DoneOnDay, Filter, Moment, SectionCount, Sort, Task, TaskPage, View} from "../types" */

const BLOCK = 100; // tasks that are loaded together
const FEW = 3; // so many blocks are loaded again as a whole
const NOTHING = /** @type {Filter} */ ({ query: "", label: "", priority: "" });

/** The first and the last row of a range, counted from 0. @typedef {[first: number, last: number]} Range */
/** Tasks and the number of those before them. @typedef {{offset: number, page: TaskPage}} Loaded */

/** The rows of a view: those that are loaded, and how many there are. They are loaded in blocks, in any order. */
export class Pages {
  /** @type {View} */
  view = "today";
  filter = NOTHING;
  /** @type {Sort} */
  sort = "date";
  /** How the rows are sorted, which are of the sort before until the view is loaded. @type {Sort} */
  order = "date";
  /** The user's wall clock by which the server has sorted. */
  sortedAt = "";
  /** Whether the view and the filter are loaded. */
  current = false;
  total = 0;
  /** @type {SectionCount[]} */
  sections = [];
  /** @type {DoneOnDay[]} */
  days = [];
  /** Whether the shown rows are those of an earlier visit. */
  earlier = false;
  /** The task of each row, null if it is not loaded. @type {(Task | null)[]} */
  rows = [];
  /** The loaded blocks; a stale one is loaded again once it is seen. @type {Map<number, "fresh" | "stale">} */
  #blocks = new Map();
  /** Aborted once another view or filter is opened: its requests would be waited for. */
  #opened = new AbortController();
  #queue = Promise.resolve();
  #api;
  #onPage;

  /** @param {Api} api @param {(page: TaskPage, isFirst: boolean) => void} onPage */
  constructor(api, onPage) {
    this.#api = api;
    this.#onPage = onPage;
  }

  /** The loaded tasks, in order. */
  get tasks() {
    return this.rows.filter((task) => task !== null);
  }

  get filtered() {
    return Object.values(this.filter).some(Boolean);
  }

  /** Loads a view with a filter; of the same view, the old tasks are shown until it is known whether that succeeds. @param {View} view @param {Filter} filter @param {Sort} sort */
  async begin(view, filter, sort) {
    if (view !== this.view || this.earlier) this.#clear();
    const isOther = JSON.stringify(filter) !== JSON.stringify(this.filter);
    [this.view, this.filter, this.sort, this.current] = [view, filter, sort, false];
    this.#opened.abort();
    this.#opened = new AbortController();
    const { signal } = this.#opened;
    await this.#enqueue(async () => {
      const loaded = await this.#readBlock(0).catch((error) => {
        if (isOther && !signal.aborted) this.#clear();
        throw error;
      });
      this.rows = [];
      this.order = sort;
      this.#blocks.clear();
      this.#put([loaded]);
      [this.current, this.earlier] = [true, false];
    });
  }

  #clear() {
    [this.rows, this.sections, this.total, this.earlier] = [[], [], 0, false];
  }

  /** Shows the rows of an earlier visit until those of the server are loaded. @param {TaskPage} page */
  showEarlier({ tasks, total, sections, days = [] }) {
    if (this.current || this.rows.length > 0) return;
    this.rows = Array.from({ length: total }, (_, at) => tasks[at] ?? null);
    Object.assign(this, { total, sections, days, earlier: true });
  }

  /** Whether time has changed the sections since they were loaded. @param {Moment} now */
  expired({ day, time }) {
    const [sortedDay, sortedTime = ""] = this.sortedAt.split("T");
    const passed = (/** @type {Task | null} */ task) => task?.due === day && task.time !== null && task.time >= sortedTime && task.time < time;
    return this.current && (sortedDay !== day || this.rows.some(passed));
  }

  /** Whether a part of the range has to be loaded. @param {Range} range */
  misses(range) {
    return this.current && this.#blocksOf(range).some((block) => this.#blocks.get(block) !== "fresh");
  }

  /** Loads what is missing in the range or may have changed. @param {Range} range */
  async load(range) {
    await this.#enqueue(async () => {
      for (const block of this.#blocksOf(range)) if (this.#blocks.get(block) !== "fresh") this.#put([await this.#readBlock(block)]);
    });
  }

  /** Loads the seen rows again, and the others once they are seen. @param {Range} seen @param {number[]} [changed] */
  async refresh(seen, changed = []) {
    if (!this.current) return this.begin(this.view, this.filter, this.sort);
    await this.#enqueue(async () => {
      const blocks = this.#blocks.size <= FEW ? [...this.#blocks.keys()] : this.#blocksOf(seen);
      const loaded = [];
      for (const block of blocks.length > 0 ? blocks : [0]) loaded.push(await this.#readBlock(block));
      for (const block of this.#blocks.keys()) this.#blocks.set(block, "stale");
      const gone = new Set(changed);
      this.rows = this.rows.map((task) => (task && gone.has(task.id) ? null : task));
      this.#put(loaded);
    });
  }

  /** @param {Range} range */
  #blocksOf([first, last]) {
    const [from, to] = [first, Math.min(last, this.rows.length - 1)].map((row) => Math.floor(row / BLOCK));
    return Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => from + at);
  }

  /** Takes over loaded blocks. @param {Loaded[][]} blocks */
  #put(blocks) {
    const loaded = blocks.flat();
    const { total, sections, days, now } = loaded[loaded.length - 1].page;
    [this.total, this.sections, this.days, this.sortedAt] = [total, sections, days ?? this.days, now];
    const fresh = new Set(loaded.flatMap(({ page }) => page.tasks.map(({ id }) => id)));
    const others = this.rows.map((task) => (task && fresh.has(task.id) ? null : task));
    this.rows = Array.from({ length: total }, (_, at) => others[at] ?? null);
    for (const { offset, page } of loaded) this.rows.splice(offset, page.tasks.length, ...page.tasks);
    this.rows.length = total;
    for (const [{ offset }] of blocks) this.#blocks.set(offset / BLOCK, "fresh");
    for (const block of this.#blocks.keys()) if (block > 0 && block * BLOCK >= total) this.#blocks.delete(block);
  }

  /** Runs one load after the other; loads of another view are dropped. @param {() => Promise<void>} work */
  #enqueue(work) {
    const { signal } = this.#opened;
    const turn = this.#queue.then(async () => {
      if (signal.aborted) return;
      try {
        await work();
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    });
    this.#queue = turn.catch(() => {});
    return turn;
  }

  /** Loads a block: in several pages, if its descriptions are long. @param {number} block @returns {Promise<Loaded[]>} */
  async #readBlock(block) {
    const { signal } = this.#opened;
    /** @type {Loaded[]} */
    const loaded = [];
    const end = (block + 1) * BLOCK;
    for (let offset = block * BLOCK, more = true; more && offset < end; ) {
      const page = await this.#api.page(this.view, this.filter, this.sort, offset, end - offset, signal);
      signal.throwIfAborted();
      loaded.push({ offset, page });
      this.#onPage(page, offset === 0);
      offset += page.tasks.length;
      more = page.tasks.length > 0 && offset < page.total;
    }
    return loaded;
  }
}

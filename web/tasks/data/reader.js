// @ts-check
import { ConnectionLost, HttpError } from "../../chat/protocol.js";
import { Clock } from "./clock.js";
import { Live } from "./live.js";
import { Pages } from "./pages.js";
import { Wishes } from "./wishes.js";
/** @import {Api} from "./api.js" */
/** @import {Filter, TaskPage, View} from "../types" */

const AROUND = 20; // tasks that are read again above and below what is seen

/**
 * Who shows what is read.
 * @typedef {object} Owner
 * @property {() => boolean} seen whether anybody sees the list
 * @property {() => [number, number]} range the first and the last task that is seen
 * @property {() => void} changed
 * @property {() => void} renewed
 * @property {() => void} unauthorized
 */

/** Reads what is shown, and again what has changed. */
export class Reader {
  /** Why nothing could be read. */
  problem = "";
  /** Labels that were seen on tasks. @type {Set<string>} */
  labels = new Set();
  clock = new Clock();
  #lingerUntil = 0;
  /** @type {Promise<void> | null} */
  #renewing = null;
  /** @type {number[]} */
  #news = [];
  #api;
  #owner;

  /** @param {Api} api @param {Owner} owner */
  constructor(api, owner) {
    this.#api = api;
    this.#owner = owner;
    const { seen, changed } = owner;
    this.pages = new Pages(api, (page) => this.#came(page));
    this.live = new Live(api, { seen, changed, news: (ids) => this.renew(ids), failed: this.failed });
    this.wishes = new Wishes(api, {
      again: () => this.live.again(),
      here: () => this.live.here(),
      changed,
      renew: () => this.renew(),
    });
  }

  /** @param {View} view @param {Partial<Filter>} filter */
  async open(view, filter) {
    const begun = this.pages.begin(view, { ...this.pages.filter, ...filter });
    this.#owner.changed();
    await this.#reading(begun);
    this.live.look(); // from now on again and again
  }

  /** A task, in whatever view it is. @param {number} id */
  task(id) {
    return this.#api.task(id);
  }

  /** Read again what may have changed, all that is asked for meanwhile in one go. @param {number[]} [ids] */
  renew(ids = []) {
    this.#news.push(...ids);
    return (this.#renewing ??= this.#renew());
  }

  async #renew() {
    do await new Promise((resolve) => setTimeout(resolve, this.#lingerUntil - Date.now()));
    while (Date.now() < this.#lingerUntil);
    this.#renewing = null; // what is asked for from now on is read once more
    const [first, last] = this.#owner.range();
    await this.#reading(this.pages.renew([Math.max(0, first - AROUND), last + AROUND], this.#news.splice(0)));
    this.#owner.renewed();
  }

  /** Read what follows, if the end is near, and what may have changed before. @param {boolean} nearEnd */
  async reach(nearEnd) {
    if (nearEnd) await this.more();
    const [first, last] = this.#owner.range();
    const stale = this.pages.staleIn([first, last + AROUND]);
    if (stale !== null) await this.#reading(this.pages.freshen(stale));
  }

  async more() {
    if (this.pages.hasMore && !this.pages.busy) await this.#reading(this.pages.more());
  }

  /** What is ticked stays where it is for a moment: several are ticked one after the other. @param {number} time ms */
  linger(time) {
    this.#lingerUntil = Date.now() + time;
  }

  /** @param {unknown} error */
  failed = (error) => {
    if (error instanceof ConnectionLost) this.live.away();
    else if (error instanceof HttpError && error.status === 401) this.#owner.unauthorized();
    else if (error instanceof HttpError) this.problem = error.message;
    else throw error;
    this.#owner.changed();
  };

  /** @param {Promise<void>} reading */
  async #reading(reading) {
    try {
      await reading;
      this.problem = "";
    } catch (error) {
      this.failed(error);
    }
    this.#owner.changed();
  }

  /** @param {TaskPage} page */
  #came({ now, time_zone, last, tasks }) {
    this.clock.set(now, time_zone);
    this.live.after = Math.max(this.live.after ?? 0, last);
    this.live.here();
    for (const { labels } of tasks) for (const label of labels) this.labels.add(label);
  }
}

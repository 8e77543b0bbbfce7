// @ts-check
import { ConnectionLost, HttpError } from "../../chat/protocol.js";
import { Clock } from "./clock.js";
import { ChangePoller } from "./poller.js";
import { Pages } from "./pages.js";
import { PendingChanges } from "./pending.js";
/** @import {Api} from "./api.js" */
/** @import {Filter, TaskPage, View} from "../types" */

const AROUND = 20; // tasks that are loaded again above and below the visible ones

/**
 * The owner of a reader.
 * @typedef {object} Owner
 * @property {() => boolean} seen whether the list is visible
 * @property {() => [number, number]} range the first and the last visible task
 * @property {() => void} changed
 * @property {() => void} renewed
 * @property {() => void} unauthorized
 */

/** Loads the shown tasks, and again those that have changed. */
export class Reader {
  /** Why loading failed. */
  problem = "";
  /** Labels of loaded tasks. @type {Set<string>} */
  labels = new Set();
  clock = new Clock();
  #refreshAfter = 0;
  /** @type {Promise<void> | null} */
  #refreshing = null;
  /** @type {number[]} */
  #changedIds = [];
  #api;
  #owner;

  /** @param {Api} api @param {Owner} owner */
  constructor(api, owner) {
    this.#api = api;
    this.#owner = owner;
    const { seen, changed } = owner;
    this.pages = new Pages(api, (page) => this.#receivePage(page));
    this.poller = new ChangePoller(api, { seen, changed, news: (ids) => this.refresh(ids), failed: this.failed });
    this.pending = new PendingChanges(api, {
      again: () => this.poller.untilReachable(),
      here: () => this.poller.markReachable(),
      changed,
      renew: () => this.refresh(),
    });
  }

  /** @param {View} view @param {Partial<Filter>} filter */
  async open(view, filter) {
    const begun = this.pages.begin(view, { ...this.pages.filter, ...filter });
    this.#owner.changed();
    await this.#read(begun);
    this.poller.poll(); // begins to poll
  }

  /** Loads one task. @param {number} id */
  task(id) {
    return this.#api.task(id);
  }

  /** Loads what may have changed; calls in between are answered together. @param {number[]} [ids] */
  refresh(ids = []) {
    this.#changedIds.push(...ids);
    return (this.#refreshing ??= this.#refresh());
  }

  async #refresh() {
    do await new Promise((resolve) => setTimeout(resolve, this.#refreshAfter - Date.now()));
    while (Date.now() < this.#refreshAfter);
    this.#refreshing = null; // later calls load once more
    const [first, last] = this.#owner.range();
    await this.#read(this.pages.refresh([Math.max(0, first - AROUND), last + AROUND], this.#changedIds.splice(0)));
    this.#owner.renewed();
  }

  /** Loads the next tasks near the end, and visible ones that may have changed. @param {boolean} nearEnd */
  async loadNearby(nearEnd) {
    if (nearEnd) await this.more();
    const [first, last] = this.#owner.range();
    const stale = this.pages.staleIn([first, last + AROUND]);
    if (stale !== null) await this.#read(this.pages.reload(stale));
  }

  async more() {
    if (this.pages.hasMore && !this.pages.busy) await this.#read(this.pages.more());
  }

  /** Delays loading, so that tasks that are completed one after the other stay in place. @param {number} time ms */
  delayRefresh(time) {
    this.#refreshAfter = Date.now() + time;
  }

  /** @param {unknown} error */
  failed = (error) => {
    if (error instanceof ConnectionLost) this.poller.markLost();
    else if (error instanceof HttpError && error.status === 401) this.#owner.unauthorized();
    else if (error instanceof HttpError) this.problem = error.message;
    else throw error;
    this.#owner.changed();
  };

  /** @param {Promise<void>} reading */
  async #read(reading) {
    try {
      await reading;
      this.problem = "";
    } catch (error) {
      this.failed(error);
    }
    this.#owner.changed();
  }

  /** @param {TaskPage} page */
  #receivePage({ now, time_zone, last, tasks }) {
    this.clock.set(now, time_zone);
    this.poller.after = Math.max(this.poller.after ?? 0, last);
    this.poller.markReachable();
    for (const { labels } of tasks) for (const label of labels) this.labels.add(label);
  }
}

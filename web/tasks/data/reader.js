// @ts-check
import { ConnectionLost, HttpError } from "../../chat/protocol.js";
import { LastSeen } from "../../database.js";
import { ChangePoller } from "./poller.js";
import { Pages } from "./pages.js";
import { PendingChanges } from "./pending.js";
/** @import {Unsaved} from "../../unsaved.js" */
/** @import {Api} from "./api.js" */
/** @import {Range} from "./pages.js" */
/** @import {Outcome, StoredChange} from "./pending.js" */
/** @import {Filter, Moment, Sort, TaskPage, View} from "../types" */

const AROUND = 40; // rows that are loaded above and below the visible ones

/**
 * The owner of a reader.
 * @typedef {object} Owner
 * @property {() => boolean} seen whether the list is visible
 * @property {() => [number, number]} range the first and the last visible task
 * @property {() => void} changed
 * @property {() => void} renewed
 * @property {() => void} unauthorized
 * @property {(change: StoredChange, outcome: Outcome) => void} settled
 * @property {(from: number, to: number) => void} renamed a new task has got its number
 */

/** Loads the shown tasks, and again those that have changed. */
export class Reader {
  /** Why loading failed. */
  problem = "";
  /** Labels of loaded tasks. @type {Set<string>} */
  labels = new Set();
  clock = new Clock();
  #loading = false;
  #refreshAfter = 0;
  /** @type {Promise<void> | null} */
  #refreshing = null;
  /** @type {number[]} */
  #changedIds = [];
  #api;
  #lastSeen;
  #owner;

  /** @param {Api} api @param {Unsaved} unsaved @param {Owner} owner */
  constructor(api, unsaved, owner) {
    this.#api = api;
    this.#lastSeen = new LastSeen(unsaved.user);
    this.#owner = owner;
    const { seen, changed, settled, renamed } = owner;
    this.pages = new Pages(api, (page, isFirst) => this.#receivePage(page, isFirst));
    this.poller = new ChangePoller(api, { seen, changed, news: (ids) => this.refresh(ids), failed: this.failed, expired: () => this.pages.expired(this.clock.now) });
    this.pending = new PendingChanges(api, unsaved, {
      settled,
      renamed,
      unauthorized: this.failed,
      lost: () => this.poller.lost,
      again: () => this.poller.untilReachable(),
      here: () => this.poller.markReachable(),
      changed,
      renew: () => this.refresh(),
    });
  }

  /** @param {View} view @param {Partial<Filter>} filter @param {Sort} sort */
  async open(view, filter, sort) {
    const begun = this.pages.begin(view, { ...this.pages.filter, ...filter }, sort);
    void this.#showEarlier();
    this.#owner.changed();
    if (!(await this.#read(begun))) void this.#showEarlier();
    this.poller.begin();
  }

  /** Shows the list as it was seen last, until the server answers. */
  async #showEarlier() {
    const { view, sort, filtered } = this.pages;
    /** @type {TaskPage | null} */
    const page = filtered ? null : await this.#lastSeen.get(nameOf(view, sort));
    if (page === null || this.pages.view !== view || this.pages.sort !== sort || this.pages.filtered) return;
    this.pages.showEarlier(page);
    this.#owner.changed();
  }

  close() {
    void this.#lastSeen.close();
    this.poller.close();
    this.pending.close();
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
    await this.#read(this.pages.refresh(this.#near, this.#changedIds.splice(0)));
    this.#owner.renewed();
    void this.loadNearby();
  }

  /** Loads the rows around the visible ones that are missing or may have changed. */
  async loadNearby() {
    if (this.#loading) return;
    this.#loading = true;
    while (this.pages.misses(this.#near) && (await this.load(this.#near)));
    this.#loading = false;
  }

  /** Loads the rows of a range; returns whether it succeeded. @param {Range} range */
  load(range) {
    return this.#read(this.pages.load(range));
  }

  /** The visible rows and some around them. @returns {Range} */
  get #near() {
    const [first, last] = this.#owner.range();
    return [Math.max(0, first - AROUND), last + AROUND];
  }

  /** Loads all tasks of the view. */
  loadAll() {
    return this.load([0, this.pages.rows.length - 1]);
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
      return true;
    } catch (error) {
      this.failed(error);
      return false;
    } finally {
      this.#owner.changed();
    }
  }

  /** @param {TaskPage} page @param {boolean} isFirst of its view */
  #receivePage(page, isFirst) {
    const { now, time_zone, last, tasks } = page;
    if (isFirst && !this.pages.filtered) void this.#lastSeen.set(nameOf(this.pages.view, this.pages.sort), page);
    this.clock.set(now, time_zone);
    this.poller.after = Math.max(this.poller.after ?? 0, last);
    this.poller.markReachable();
    for (const { labels } of tasks) for (const label of labels) this.labels.add(label);
  }
}

/** @param {View} view @param {Sort} sort */
const nameOf = (view, sort) => `${view} ${sort}`;

const TWO_DIGITS = /** @type {const} */ ("2-digit");
const PARTS = /** @type {const} */ ({ year: "numeric", month: TWO_DIGITS, day: TWO_DIGITS, hour: TWO_DIGITS, minute: TWO_DIGITS, hourCycle: "h23" });

/** The user's local time, set by each response of the server, to the minute; the seconds are those of the device. */
export class Clock {
  #serverTime = localNow();
  #receivedAt = performance.now();
  /** @type {Intl.DateTimeFormat | null} */
  #format = null;

  /** @param {string} now like "2026-11-23T11:20" @param {string} zone */
  set(now, zone) {
    this.#serverTime = Date.parse(`${now.slice(0, 16)}Z`) + (Date.now() % 60_000);
    this.#receivedAt = performance.now();
    if (this.#format?.resolvedOptions().timeZone === zone) return;
    try {
      this.#format = new Intl.DateTimeFormat("en", { timeZone: zone, ...PARTS });
    } catch {
      this.#format = null; // the browser does not know this zone
    }
  }

  /** @returns {Moment} */
  get now() {
    const text = new Date(this.#serverTime + performance.now() - this.#receivedAt).toISOString();
    return { day: text.slice(0, 10), time: text.slice(11, 16) };
  }

  /** Returns an instant in the user's zone. @param {string} instant @returns {Moment} */
  momentOf(instant) {
    const parts = this.#partsOf(instant);
    return { day: this.dayOf(instant), time: parts ? `${parts.hour}:${parts.minute}` : instant.slice(11, 16) };
  }

  /** Returns the day of an instant in the user's zone. @param {string} instant */
  dayOf(instant) {
    const parts = this.#partsOf(instant);
    return parts ? `${parts.year}-${parts.month}-${parts.day}` : instant.slice(0, 10);
  }

  /** @param {string} instant */
  #partsOf(instant) {
    return this.#format && Object.fromEntries(this.#format.formatToParts(new Date(instant)).map(({ type, value }) => [type, value]));
  }
}

/** Returns the browser's local time as if it were UTC. */
function localNow() {
  const now = new Date();
  return now.getTime() - now.getTimezoneOffset() * 60_000;
}

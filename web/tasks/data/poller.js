// @ts-check
import { HttpError } from "../../chat/protocol.js";
import { REACHED } from "../../http.js";
/** @import {Api} from "./api.js" */

const PAUSE = 1500; // ms between two requests
const MAX_PAUSE = 10_000; // ms

/** Asks for changes while the list is visible, less often while the server is unreachable. */
export class ChangePoller {
  /** Whether the server cannot be reached. */
  lost = false;
  /** The newest known change. @type {number | null} */
  after = null;
  #pause = PAUSE;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #begun = false;
  #polling = false;
  /** @type {(() => void)[]} */
  #waiting = [];
  #closed = false;
  #api;
  #owner;

  /** @param {Api} api @param {{seen: () => boolean, news: (ids: number[]) => Promise<void>, failed: (error: unknown) => void, changed: () => void, expired: () => boolean}} owner */
  constructor(api, owner) {
    this.#api = api;
    this.#owner = owner;
    document.addEventListener("visibilitychange", this.poll);
    addEventListener("online", this.poll);
    addEventListener(REACHED, this.#pollIfLost);
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.poll);
    removeEventListener("online", this.poll);
    removeEventListener(REACHED, this.#pollIfLost);
  }

  /** Begins to ask, after a first page was asked for, which a change that is found earlier would outdate. */
  begin() {
    this.#begun = true;
    this.poll();
  }

  /** Asks at once. */
  poll = () => void this.#poll();

  /** Asks at once when another request has reached the server. */
  #pollIfLost = () => this.lost && this.poll();

  markLost() {
    if (!this.lost) {
      this.lost = true;
      this.#owner.changed();
    }
    this.#schedule();
  }

  markReachable() {
    this.#pause = PAUSE;
    if (this.lost) {
      this.lost = false;
      this.#owner.changed();
    }
    for (const go of this.#waiting.splice(0)) go();
  }

  /** Resolves once the server can be reached. @returns {Promise<void>} */
  untilReachable() {
    this.markLost();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async #poll() {
    clearTimeout(this.#timer);
    if (!this.#begun || this.#closed || this.#polling || !(this.#owner.seen() || this.#waiting.length > 0)) return;
    this.#polling = true;
    try {
      const { last, task_ids, more } = await this.#api.changes(this.after ?? 0);
      const first = this.after === null;
      this.after = Math.max(last, this.after ?? 0);
      if (this.#closed) return;
      const wasLost = this.lost;
      this.markReachable();
      if (more || first || wasLost || task_ids.length > 0 || this.#owner.expired()) await this.#owner.news(task_ids);
    } catch (error) {
      if (!this.#closed) this.#owner.failed(error);
      if (error instanceof HttpError) this.#pause = MAX_PAUSE;
    } finally {
      this.#polling = false;
      this.#schedule();
    }
  }

  #schedule() {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    this.#timer = setTimeout(this.poll, this.#pause);
    if (this.lost) this.#pause = Math.min(this.#pause * 1.6, MAX_PAUSE);
  }
}

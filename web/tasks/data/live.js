// @ts-check
import { HttpError } from "../../chat/protocol.js";
/** @import {Api} from "./api.js" */

const PAUSE = 1500; // ms between two looks
const LONGEST_PAUSE = 10_000;

/** Looks for changes as long as somebody sees the list, ever less often while the server is away. */
export class Live {
  /** Whether the server cannot be reached. */
  lost = false;
  /** The newest change that is known. @type {number | null} */
  after = null;
  #pause = PAUSE;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #looking = false;
  /** @type {(() => void)[]} */
  #waiting = [];
  #closed = false;
  #api;
  #owner;

  /** @param {Api} api @param {{seen: () => boolean, news: (ids: number[]) => Promise<void>, failed: (error: unknown) => void, changed: () => void}} owner */
  constructor(api, owner) {
    this.#api = api;
    this.#owner = owner;
    document.addEventListener("visibilitychange", this.look);
    addEventListener("online", this.look);
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.look);
    removeEventListener("online", this.look);
  }

  /** Look at once. */
  look = () => void this.#look();

  /** The server could not be reached. */
  away() {
    if (!this.lost) {
      this.lost = true;
      this.#owner.changed();
    }
    this.#later();
  }

  /** It answers. */
  here() {
    this.#pause = PAUSE;
    if (this.lost) {
      this.lost = false;
      this.#owner.changed();
    }
    for (const go of this.#waiting.splice(0)) go();
  }

  /** When it can be reached again. @returns {Promise<void>} */
  again() {
    this.away();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async #look() {
    clearTimeout(this.#timer);
    if (this.#closed || this.#looking || !(this.#owner.seen() || this.#waiting.length > 0)) return;
    this.#looking = true;
    try {
      const { last, task_ids, more } = await this.#api.changes(this.after ?? 0);
      const first = this.after === null;
      this.after = Math.max(last, this.after ?? 0);
      if (this.#closed) return;
      const wasLost = this.lost;
      this.here();
      if (more || first || wasLost || task_ids.length > 0) await this.#owner.news(task_ids);
    } catch (error) {
      if (!this.#closed) this.#owner.failed(error);
      if (error instanceof HttpError) this.#pause = LONGEST_PAUSE;
    } finally {
      this.#looking = false;
      this.#later();
    }
  }

  #later() {
    clearTimeout(this.#timer);
    if (this.#closed) return;
    this.#timer = setTimeout(this.look, this.#pause);
    if (this.lost) this.#pause = Math.min(this.#pause * 1.6, LONGEST_PAUSE);
  }
}

// @ts-check
import { TEXTS } from "../texts.js";
const SLOW_AFTER = 5000; // ms

export const SLOW = TEXTS.talk.slow;

/** Counts requests that take longer than usual. */
export class SlowRequests {
  waiting = 0;
  #changed;

  /** @param {(isNews: boolean) => void} changed with true when a request is slow for the first time */
  constructor(changed) {
    this.#changed = changed;
  }

  /** Begins to wait. The returned function is called when data has arrived, with true if more is expected. */
  begin() {
    let late = false;
    let isNews = true;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const markSlow = () => {
      late = true;
      this.#count(1, isNews);
      isNews = false;
    };
    const received = (more = false) => {
      clearTimeout(timer);
      if (late) this.#count(-1);
      late = false;
      if (more) timer = setTimeout(markSlow, SLOW_AFTER);
    };
    received(true);
    return received;
  }

  /** @param {number} more @param {boolean} [isNews] */
  #count(more, isNews = false) {
    this.waiting += more;
    this.#changed(isNews);
  }
}

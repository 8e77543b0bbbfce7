// @ts-check
import { TEXTS } from "../texts.js";
const SLOW_AFTER = 5000; // ms

export const SLOW = TEXTS.talk.slow;

/** Counts requests that take longer than usual. */
export class SlowRequests {
  waiting = 0;
  #changed;

  /** @param {(waiting: boolean) => void} changed */
  constructor(changed) {
    this.#changed = changed;
  }

  /** Begins to wait. The returned function is called when data has arrived, with true if more is expected. */
  begin() {
    let late = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const markSlow = () => {
      late = true;
      this.#count(1);
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

  /** @param {number} more */
  #count(more) {
    this.waiting += more;
    this.#changed(more > 0);
  }
}

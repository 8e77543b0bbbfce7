// @ts-check
import { TEXTS } from "../texts.js";
const USUAL = 5000; // ms

export const SLOW = TEXTS.talk.slow;

/** Counts what has been waited for longer than usual. */
export class Patience {
  waiting = 0;
  #changed;

  /** @param {(waiting: boolean) => void} changed */
  constructor(changed) {
    this.#changed = changed;
  }

  /** Begin to wait. What it returns is called whenever something came, with true when there is more to wait for. */
  begin() {
    let late = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const beLate = () => {
      late = true;
      this.#count(1);
    };
    const came = (more = false) => {
      clearTimeout(timer);
      if (late) this.#count(-1);
      late = false;
      if (more) timer = setTimeout(beLate, USUAL);
    };
    came(true);
    return came;
  }

  /** @param {number} more */
  #count(more) {
    this.waiting += more;
    this.#changed(more > 0);
  }
}

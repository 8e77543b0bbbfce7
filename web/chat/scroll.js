// @ts-check
const NEAR = 80; // px: closer to an edge than this counts as being there

/** Keeps the end visible if it is visible, and the position otherwise. */
export class Scroll {
  atEnd = true;
  /** @type {string | undefined} */
  #first;
  #distance = 0;
  #held = false;
  #top = 0;
  #height = 0;
  #log;
  #owner;
  #sizes;

  /** @param {HTMLElement} log @param {{older: () => void, changed: () => void}} owner */
  constructor(log, owner) {
    this.#log = log;
    this.#owner = owner;
    this.#sizes = new ResizeObserver(() => this.atEnd && this.toEnd());
    this.#sizes.observe(log);
  }

  close() {
    this.#sizes.disconnect();
  }

  /** Handles scrolling. */
  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.#log;
    this.#top = scrollTop;
    const atEnd = scrollHeight - scrollTop - clientHeight < NEAR;
    if (scrollTop < NEAR && scrollHeight > clientHeight) this.#owner.older();
    if (atEnd !== this.atEnd) this.#owner.changed();
    this.atEnd = atEnd;
  }

  /** Keeps the position although content grows. */
  hold() {
    this.#held = true;
  }

  /** Follows the end from now on. */
  follow() {
    this.atEnd = true;
    this.#height = 0;
  }

  toEnd() {
    this.#log.scrollTop = this.#log.scrollHeight;
  }

  beforeDrawing() {
    if (this.#log.scrollTop !== this.#top) this.scrolled(); // its event comes later
    this.#distance = this.#log.scrollHeight - this.#log.scrollTop;
  }

  /** @param {string | undefined} first the oldest item that is shown */
  drawn(first) {
    const { scrollHeight } = this.#log;
    // Nothing moves without new content or under a pressed pointer, because a click would be lost.
    if (this.#held || this.#log.matches(":active")) this.scrolled();
    else if (this.atEnd) scrollHeight === this.#height || this.toEnd();
    else if (first !== this.#first) this.#log.scrollTop = this.#log.scrollHeight - this.#distance; // older items were added
    this.#held = false;
    this.#first = first;
    this.#height = scrollHeight;
    this.#top = this.#log.scrollTop;
  }
}

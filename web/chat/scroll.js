// @ts-check
const NEAR = 80; // px: closer to an edge than this counts as being there
const SETTLING = 500; // ms
const ABOVE = 0.25; // of the height, for what is above a text that goes

/** Keeps the end visible if it is visible, and the position otherwise. */
export class Scroll {
  atEnd = true;
  /** @type {string | undefined} */
  #first;
  #distance = 0;
  #held = false;
  /** Down to here in px, what was shown stays in its place though content has gone; 0: nothing has. */
  #floor = 0;
  #space = 0;
  #top = 0;
  #height = 0;
  #drawnAt = 0;
  #touchedAt = -Infinity;
  #log;
  #owner;
  #sizes;
  /** What is laid out only in sight. */
  #far;

  /** @param {HTMLElement} log @param {{older: () => void, changed: () => void}} owner */
  constructor(log, owner) {
    this.#log = log;
    this.#owner = owner;
    this.#far = log.getElementsByClassName("far");
    this.#sizes = new ResizeObserver(() => this.atEnd && this.toEnd());
    this.#sizes.observe(log);
  }

  close() {
    this.#sizes.disconnect();
  }

  /** Handles scrolling. */
  scrolled() {
    this.#look(this.atEnd && this.#isStill);
  }

  /** Handles that texts have got their real height, as they are in sight. */
  resized() {
    if (this.atEnd && !this.#held && this.#isStill) this.toEnd();
  }

  /** Remembers that the user does something that may scroll. */
  touched() {
    this.#touchedAt = performance.now();
  }

  /** Whether the user has not scrolled: soon after a drawing, texts that get their real height move what is shown, too. */
  get #isStill() {
    const now = performance.now();
    const settles = this.#far.length > 0 && now - this.#drawnAt < SETTLING && now - this.#touchedAt > SETTLING;
    return settles || this.#log.scrollTop === this.#top;
  }

  #look(follows = false) {
    const { scrollTop, scrollHeight, clientHeight } = this.#log;
    this.#top = scrollTop;
    const atEnd = follows || scrollHeight - scrollTop - clientHeight < NEAR;
    if (scrollTop < NEAR && scrollHeight > clientHeight) this.#owner.older();
    if (atEnd !== this.atEnd) this.#owner.changed();
    this.atEnd = atEnd;
  }

  /** Keeps the position although content grows. */
  hold() {
    this.#held = true;
  }

  /** Keeps what is above a text in its place, or in sight, although the text goes; until the end is followed. @param {Element | null} text */
  keep(text) {
    const { scrollTop, clientHeight } = this.#log;
    const above = text ? text.getBoundingClientRect().top - this.#log.getBoundingClientRect().top : 0;
    this.#floor = scrollTop + clientHeight + (above < 0 ? above - clientHeight * ABOVE : 0);
  }

  /** Follows the end from now on. */
  follow() {
    this.atEnd = true;
    this.#floor = this.#height = 0;
  }

  toEnd() {
    this.#log.scrollTop = this.#log.scrollHeight;
    this.#top = this.#log.scrollTop;
  }

  beforeDrawing() {
    if (this.#log.scrollTop !== this.#top) this.scrolled(); // its event comes later
    this.#distance = this.#log.scrollHeight - this.#log.scrollTop;
  }

  /** @param {string | undefined} first the oldest item that is shown */
  drawn(first) {
    if (this.#floor || this.#space) this.#fillUp();
    const { scrollHeight } = this.#log;
    // Nothing moves without new content or under a pressed pointer, because a click would be lost.
    if (this.#held || this.#log.matches(":active")) this.#look();
    else if (this.atEnd) scrollHeight === this.#height || this.toEnd();
    else if (first !== this.#first) this.#log.scrollTop = this.#log.scrollHeight - this.#distance; // older items were added
    this.#drawnAt = performance.now();
    this.#held = false;
    this.#first = first;
    this.#height = scrollHeight;
    this.#top = this.#log.scrollTop;
  }

  /** Leaves space below the content where it ends above the floor. */
  #fillUp() {
    const top = this.#top;
    this.#space = Math.max(0, this.#floor - (this.#log.scrollHeight - this.#space));
    this.#log.style.setProperty("--space", `${this.#space}px`);
    if (this.#floor) this.#log.scrollTop = top;
  }
}

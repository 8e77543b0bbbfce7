// @ts-check
/** @import {Section} from "./types" */

const ROW = matchMedia("(pointer: coarse)").matches ? 53 : 39; // px, until a row is measured
const HEADING = 40; // px, until one is measured
const BEYOND = 700; // px that are drawn above and below the visible part
const ENOUGH = 250; // px: if less is drawn beyond the visible part, more is drawn
const ANCHORS = 5; // rows

/** The drawn part of a section: its tasks from `first` to before `end`, and the heights above and below. @typedef {{section: Section, first: number, end: number, above: number, below: number}} Drawn */
/** A task and its distance from the upper edge. @typedef {[id: number, distance: number]} Anchor */

/** Chooses the rows to draw: the visible ones and some around them. */
export class Window {
  /** @type {HTMLElement | null} */
  scroller = null;
  /** Whether all rows are drawn, for printing. */
  whole = false;
  /** @type {Drawn[]} */
  drawn = [];
  /** The height above and below the drawn rows. */
  above = 0;
  below = 0;
  /** The height above all sections. */
  #lead = 0;
  /** The height of a row that was never drawn. */
  row = ROW;
  #heading = HEADING;
  /** @type {Map<number, number>} */
  #heights = new Map();
  /** The task of each row, 0 if it is not loaded, and the offset of the row. @type {number[]} */
  #ids = [];
  /** @type {number[]} */
  #tops = [];
  #height = 0;
  /** The drawn range. */
  #from = 0;
  #to = 0;

  /** Chooses what to draw. @param {Section[]} sections */
  choose(sections) {
    const top = this.#top;
    const beyond = this.whole ? Infinity : BEYOND;
    [this.#from, this.#to] = [top - beyond, top + this.#viewHeight + beyond];
    [this.drawn, this.above, this.below, this.#ids, this.#tops] = [[], 0, 0, [], []];
    let y = this.#lead;
    for (const section of sections) {
      const start = y;
      const drawn = this.#part(section, y);
      y = drawn.bottom;
      if (y <= this.#from) this.above = y - this.#lead;
      else if (start < this.#to) this.drawn.push(drawn);
      else this.below += y - start;
    }
    this.#height = y;
  }

  /** @param {Section} section @param {number} y where it begins */
  #part(section, y) {
    const drawn = { section, first: 0, end: 0, above: 0, below: 0, bottom: 0 };
    y += section.title ? this.#heading : 0;
    section.tasks.forEach((task, at) => {
      const height = this.#heights.get(task?.id ?? 0) ?? this.row;
      if (y + height <= this.#from) [drawn.above, drawn.first] = [drawn.above + height, at + 1];
      else if (y < this.#to) drawn.end = at + 1;
      else drawn.below += height;
      this.#ids.push(task?.id ?? 0);
      this.#tops.push(y);
      y += height;
    });
    return { ...drawn, bottom: y };
  }

  /** Measures the drawn rows; returns whether the heights are as expected. */
  measure() {
    let right = true;
    for (const row of /** @type {Iterable<HTMLElement>} */ (this.scroller?.querySelectorAll("[data-row]") ?? [])) {
      const id = Number(row.dataset.row);
      if ((this.#heights.get(id) ?? this.row) !== row.offsetHeight) right = false;
      this.#heights.set(id, row.offsetHeight);
    }
    if (this.#heights.size > 0) this.row = Math.min(...this.#heights.values());
    const { offsetHeight: heading = this.#heading } = this.#found(".head");
    const { offsetTop: lead = this.#lead } = this.#found(".space");
    if (heading !== this.#heading || lead !== this.#lead) right = false;
    [this.#heading, this.#lead] = [heading, lead];
    return right;
  }

  /** Forgets the heights, because the width has changed. */
  forget() {
    this.#heights.clear();
  }

  /** The first and the last visible task, counted over all sections. @returns {[number, number]} */
  get seen() {
    const bottom = this.#top + this.#viewHeight;
    const after = this.#tops.findIndex((y) => y >= bottom);
    return [this.#firstBelow(this.#top), (after < 0 ? this.#tops.length : after) - 1];
  }

  /** Whether more has to be drawn after scrolling. */
  get exhausted() {
    const top = this.#top;
    return (this.#from > 0 && top - ENOUGH < this.#from) || (this.#to < this.#height && top + this.#viewHeight + ENOUGH > this.#to);
  }

  /** The edited task and the first visible ones, which stay in place. @param {number} [edited] @returns {Anchor[]} */
  anchors(edited) {
    const at = this.#ids.indexOf(edited ?? NaN);
    /** @type {Anchor[]} */
    const anchors = edited !== undefined && this.#isSeen(at) ? [[edited, this.#tops[at] - this.#top]] : [];
    if (this.#top === 0) return anchors;
    const first = this.#firstBelow(this.#top);
    return [...anchors, .../** @type {Anchor[]} */ (this.#ids.slice(first, first + ANCHORS).map((id, at) => [id, this.#tops[first + at] - this.#top]))];
  }

  /** @param {number} at its place */
  #isSeen(at) {
    return at >= 0 && this.#tops[at] < this.#top + this.#viewHeight && (this.#tops[at + 1] ?? this.#height) > this.#top;
  }

  /** Scrolls so that the first of these tasks that still exists stays in place. @param {Anchor[]} anchors */
  keep(anchors) {
    const anchor = anchors.find(([id]) => id && this.#ids.includes(id));
    const moved = anchor ? this.#topOf(anchor[0]) - anchor[1] - this.#top : 0;
    if (this.scroller && Math.abs(moved) >= 1) this.scroller.scrollTop += moved;
    return Math.abs(moved) >= 1;
  }

  /** Scrolls to a row that may not be drawn yet; returns whether it had to scroll. @param {number} id */
  show(id) {
    if (!this.scroller || !this.#ids.includes(id)) return false;
    const before = this.#top;
    const y = this.#topOf(id);
    const end = y + (this.#heights.get(id) ?? this.row);
    if (y - this.#heading < before) this.scroller.scrollTop = y - this.#heading;
    else if (end > before + this.#viewHeight) this.scroller.scrollTop = end - this.#viewHeight + 8;
    return this.#top !== before;
  }

  /** Scrolls to a row, also to one that is not loaded. @param {number} row */
  scrollTo(row) {
    if (this.scroller) this.scroller.scrollTop = this.#tops[row] - this.#viewHeight / 2;
  }

  /** @param {string} selector @returns {Partial<HTMLElement>} */
  #found(selector) {
    return this.scroller?.querySelector(selector) ?? {};
  }

  /** @param {number} id */
  #topOf(id) {
    return this.#tops[this.#ids.indexOf(id)];
  }

  /** @param {number} y */
  #firstBelow(y) {
    const at = this.#tops.findIndex((top) => top >= y);
    return Math.max(0, at < 0 ? this.#tops.length - 1 : at);
  }

  get #top() {
    return this.scroller?.scrollTop ?? 0;
  }

  get #viewHeight() {
    return this.scroller?.clientHeight || innerHeight;
  }
}

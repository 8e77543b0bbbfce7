// @ts-check
/** @import {Section} from "./types" */

const ROW = 46; // px, until a row was measured
const HEADING = 44;
const BEYOND = 700; // px that are drawn above and below what is seen
const ENOUGH = 250; // px: with less than that drawn beyond what is seen, more is drawn
const ANCHORS = 5;

/** What is drawn of a section: its tasks from `first` to before `end`, and how high those above and below are. @typedef {{section: Section, first: number, end: number, above: number, below: number}} Drawn */
/** A task, and how far below the upper edge it stands. @typedef {[id: number, distance: number]} Anchor */

/** Which of many rows are drawn: those that can be seen, and some around them. */
export class Window {
  /** @type {HTMLElement | null} */
  scroller = null;
  /** @type {Drawn[]} */
  drawn = [];
  /** How high what is not drawn is, above and below. */
  above = 0;
  below = 0;
  /** How high what stands above all sections is. */
  #lead = 0;
  #heading = HEADING;
  /** @type {Map<number, number>} */
  #heights = new Map();
  /** All tasks, and where each row begins. @type {number[]} */
  #ids = [];
  /** @type {number[]} */
  #tops = [];
  #height = 0;
  /** From where to where it is drawn. */
  #from = 0;
  #to = 0;

  /** Choose what to draw of these. @param {Section[]} sections */
  choose(sections) {
    const top = this.#top;
    [this.#from, this.#to] = [top - BEYOND, top + this.#room + BEYOND];
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
    y += this.#heading;
    section.tasks.forEach(({ id }, at) => {
      const height = this.#heights.get(id) ?? ROW;
      if (y + height <= this.#from) [drawn.above, drawn.first] = [drawn.above + height, at + 1];
      else if (y < this.#to) drawn.end = at + 1;
      else drawn.below += height;
      this.#ids.push(id);
      this.#tops.push(y);
      y += height;
    });
    return { ...drawn, bottom: y };
  }

  /** Measure what was drawn; returns whether it is as high as was thought. */
  measure() {
    let right = true;
    for (const row of /** @type {Iterable<HTMLElement>} */ (this.scroller?.querySelectorAll("[data-row]") ?? [])) {
      const id = Number(row.dataset.row);
      if ((this.#heights.get(id) ?? ROW) !== row.offsetHeight) right = false;
      this.#heights.set(id, row.offsetHeight);
    }
    const { offsetHeight: heading = this.#heading } = this.#found(".head");
    const { offsetTop: lead = this.#lead } = this.#found(".space");
    if (heading !== this.#heading || lead !== this.#lead) right = false;
    [this.#heading, this.#lead] = [heading, lead];
    return right;
  }

  /** The rows may have other heights from now on: the width has changed. */
  forget() {
    this.#heights.clear();
  }

  /** The first and the last task that can be seen, counted over all sections. @returns {[number, number]} */
  get seen() {
    const bottom = this.#top + this.#room;
    const after = this.#tops.findIndex((y) => y >= bottom);
    return [this.#firstBelow(this.#top), (after < 0 ? this.#tops.length : after) - 1];
  }

  /** Whether there is more to draw where the person has scrolled to. */
  get exhausted() {
    const top = this.#top;
    return (this.#from > 0 && top - ENOUGH < this.#from) || (this.#to < this.#height && top + this.#room + ENOUGH > this.#to);
  }

  /** Whether the end of what is loaded comes near. */
  get nearEnd() {
    return this.#height - this.#top < 5 * this.#room;
  }

  /** The first tasks that can be seen: what stays in its place. @returns {Anchor[]} */
  anchors() {
    if (this.#top === 0) return [];
    const first = this.#firstBelow(this.#top);
    return this.#ids.slice(first, first + ANCHORS).map((id, at) => [id, this.#tops[first + at] - this.#top]);
  }

  /** Scroll so that the first of these which is still there stands where it stood. @param {Anchor[]} anchors */
  keep(anchors) {
    const anchor = anchors.find(([id]) => this.#ids.includes(id));
    const moved = anchor ? this.#topOf(anchor[0]) - anchor[1] - this.#top : 0;
    if (this.scroller && Math.abs(moved) >= 1) this.scroller.scrollTop += moved;
    return Math.abs(moved) >= 1;
  }

  /** Scroll to a row that may not be drawn yet; returns whether that was needed. @param {number} id */
  show(id) {
    if (!this.scroller || !this.#ids.includes(id)) return false;
    const before = this.#top;
    const y = this.#topOf(id);
    const end = y + (this.#heights.get(id) ?? ROW);
    if (y - this.#heading < before) this.scroller.scrollTop = y - this.#heading;
    else if (end > before + this.#room) this.scroller.scrollTop = end - this.#room + 8;
    return this.#top !== before;
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

  get #room() {
    return this.scroller?.clientHeight || innerHeight;
  }
}

// @ts-check

/** The selected tasks and the start of the next range. */
export class Selection {
  /** Whether each row has a checkbox for the selection. */
  active = false;
  /** @type {Set<number>} */
  ids = new Set();
  /** @type {number | null} */
  #anchor = null;
  #changed;

  /** @param {() => void} changed */
  constructor(changed) {
    this.#changed = changed;
  }

  begin() {
    this.active = true;
    this.#changed();
  }

  /** Toggles a task, or selects the range from the last one to it. @param {number} id @param {number[]} [range] the order of the list */
  pick(id, range) {
    this.active = true;
    if (range) this.#extend(id, range);
    else {
      if (!this.ids.delete(id)) this.ids.add(id);
      this.#anchor = id;
    }
    this.#changed();
  }

  /** @param {number} id @param {number[]} order */
  #extend(id, order) {
    const from = order.indexOf(this.#anchor ?? id);
    const to = order.indexOf(id);
    for (const one of order.slice(Math.min(from < 0 ? to : from, to), Math.max(from, to) + 1)) this.ids.add(one);
    if (from < 0) this.#anchor = id;
  }

  /** Removes tasks that are no longer in the list. @param {Set<number>} present */
  keep(present) {
    const gone = [...this.ids].filter((id) => !present.has(id));
    for (const id of gone) this.ids.delete(id);
    if (gone.length > 0) queueMicrotask(this.#changed); // not while drawing
  }

  end() {
    if (!this.active) return;
    this.active = false;
    this.ids.clear();
    this.#anchor = null;
    this.#changed();
  }
}

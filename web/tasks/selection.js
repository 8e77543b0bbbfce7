// @ts-check

/** Which tasks are selected, and from where the next range begins. */
export class Selection {
  /** Whether each row has a box to select it by. */
  active = false;
  /** @type {Set<number>} */
  ids = new Set();
  /** @type {number | null} */
  #anchor = null;

  /** @param {number} id */
  toggle(id) {
    if (!this.ids.delete(id)) this.ids.add(id);
    this.#anchor = id;
    this.active = true;
  }

  /** All from the last that was selected to this one. @param {number} id @param {number[]} order of the list */
  extend(id, order) {
    const from = order.indexOf(this.#anchor ?? id);
    const to = order.indexOf(id);
    for (const one of order.slice(Math.min(from < 0 ? to : from, to), Math.max(from, to) + 1)) this.ids.add(one);
    if (from < 0) this.#anchor = id;
    this.active = true;
  }

  /** Only what is still in the list; returns whether some is not. @param {Set<number>} present */
  keep(present) {
    const gone = [...this.ids].filter((id) => !present.has(id));
    for (const id of gone) this.ids.delete(id);
    return gone.length > 0;
  }

  end() {
    this.active = false;
    this.ids.clear();
    this.#anchor = null;
  }
}

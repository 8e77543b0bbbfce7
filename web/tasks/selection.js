// @ts-check
import { LIST } from "../texts.js";
/** @import {TodoTasks} from "./element.js" */
/** @import {Task} from "./types" */
/** @import {Ui} from "./ui.js" */

/** The selected tasks and the start of the next range. */
export class Selection {
  /** Whether each row has a checkbox for the selection. */
  active = false;
  /** @type {Set<number>} */
  ids = new Set();
  /** The task at which a range begins. @type {number | null} */
  #anchor = null;
  #ui;
  #element;

  /** @param {Ui} ui @param {TodoTasks} element */
  constructor(ui, element) {
    this.#ui = ui;
    this.#element = element;
  }

  #changed = () => {
    this.#element.emit("todo-selection", { tasks: this.tasks.filter(({ id }) => id > 0).map(({ id, title }) => ({ id, title })) });
    this.#ui.changed();
  };

  get tasks() {
    return this.#ui.tasks.filter(({ id }) => this.ids.has(id));
  }

  begin() {
    this.active = true;
    this.#changed();
  }

  /** Selects all tasks of the view, also those that are not loaded yet. */
  async selectAll() {
    const ui = this.#ui;
    const { filter } = ui.pages;
    await ui.reader.loadAll();
    if (filter !== ui.pages.filter) return; // another view or filter was opened meanwhile
    ui.arrange();
    this.active = true;
    this.ids = new Set(ui.tasks.map(({ id }) => id));
    this.#changed();
    ui.announce(LIST.selected(this.ids.size));
  }

  /** @param {Task} task @param {boolean} range from the task that was selected before, which is loaded first */
  async pick({ id }, range) {
    this.#ui.current = id;
    const { filter } = this.#ui.pages;
    if (range) await this.#loadFrom(this.#anchor, id);
    if (filter !== this.#ui.pages.filter) return;
    this.active = true;
    if (range) this.#extend(id);
    else {
      if (!this.ids.delete(id)) this.ids.add(id);
      this.#anchor = id;
    }
    this.#changed();
  }

  /** Loads all rows between two tasks. @param {number | null} one @param {number} other */
  async #loadFrom(one, other) {
    const { rows, reader } = this.#ui;
    const [first, last] = [one, other].map((id) => rows.findIndex((task) => task?.id === id)).sort((a, b) => a - b);
    if (first < 0 || !rows.slice(first, last).includes(null)) return;
    await reader.load([first, last]);
    this.#ui.arrange();
  }

  /** @param {number} id */
  #extend(id) {
    const order = this.#ui.tasks.map((task) => task.id);
    const from = order.indexOf(this.#anchor ?? id);
    const to = order.indexOf(id);
    for (const one of order.slice(Math.min(from < 0 ? to : from, to), Math.max(from, to) + 1)) this.ids.add(one);
    if (from < 0) this.#anchor = id;
  }

  /** Returns the selected tasks if this one is among them, else only this one. @param {Task} task */
  with(task) {
    return this.ids.has(task.id) ? this.tasks : [task];
  }

  /** Returns the selected tasks and ends the selection. */
  take() {
    const { tasks } = this;
    this.end();
    return tasks;
  }

  /** Removes tasks that are no longer in the list. */
  removeMissing() {
    const present = new Set(this.#ui.tasks.map(({ id }) => id));
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

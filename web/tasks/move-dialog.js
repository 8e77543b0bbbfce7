// @ts-check
import { Preview } from "./draft.js";
/** @import {TodoTasks} from "./element.js" */
/** @import {Task, When} from "./types" */
/** @import {Ui} from "./ui.js" */

const MOVE = "move"; // the stored content of the dialog

/** The tasks to move, and what is typed or picked. @typedef {{tasks: Task[], text: string, day: string, preview: Preview}} Moving */

/** The dialog that asks to which date tasks are moved. What is typed in it is stored. */
export class MoveDialog {
  /** Null while it is closed. @type {Moving | null} */
  moving = null;
  #ui;
  #element;

  /** @param {Ui} ui @param {TodoTasks} element */
  constructor(ui, element) {
    this.#ui = ui;
    this.#element = element;
  }

  /** Opens what was typed before a reload. */
  restore() {
    const stored = this.#ui.unsaved.get(MOVE);
    if (!stored || this.moving) return;
    const preview = this.#createPreview();
    preview.write(stored.text, this.#ui.clock.now);
    this.moving = { ...stored, preview };
  }

  #createPreview() {
    return new Preview(this.#ui.api, "date", this.#ui.changed);
  }

  /** @param {Task[]} tasks */
  open(tasks) {
    const pending = tasks.filter(({ status }) => status === "pending");
    if (pending.length === 0) return;
    this.moving = { tasks: pending, text: "", day: "", preview: this.#createPreview() };
    this.#element.draw();
  }

  /** @param {{text?: string, day?: string}} typed */
  write(typed) {
    const { moving } = this;
    if (!moving) return;
    Object.assign(moving, typed);
    if (typed.text !== undefined) moving.preview.write(moving.text, this.#ui.clock.now);
    const { tasks, text, day } = moving;
    this.#ui.unsaved.set(MOVE, text || day ? { tasks, text, day } : null);
    this.#ui.changed();
  }

  /** Moves the tasks to the typed date. */
  async submit() {
    const { moving } = this;
    const understood = await moving?.preview.read(moving.text, this.#ui.clock.now);
    if (moving && moving === this.moving && understood?.due) this.close({ day: understood.due, time: understood.time });
  }

  /** Closes the dialog and moves the tasks. @param {When | null} [when] the chosen date; null removes the date, undefined cancels */
  close(when) {
    const { moving } = this;
    this.moving = null;
    this.#ui.unsaved.delete(MOVE);
    this.#element.draw();
    if (!moving || when === undefined) return;
    this.#ui.selection.end();
    void this.#ui.actions.move(moving.tasks, when);
  }
}

/** The menu of a row. */
export class RowMenu {
  /** The task, and where the button is that opened it; null while it is closed. @type {{task: Task, at: DOMRect} | null} */
  acting = null;
  #element;

  /** @param {TodoTasks} element */
  constructor(element) {
    this.#element = element;
  }

  /** @param {Task} task @param {Event} event */
  open(task, { currentTarget }) {
    this.acting = { task, at: /** @type {Element} */ (currentTarget).getBoundingClientRect() };
    this.#element.draw();
  }

  /** Closes the menu and does what was chosen. @param {() => unknown} [work] */
  close(work) {
    this.acting = null;
    this.#element.draw();
    void work?.();
  }
}

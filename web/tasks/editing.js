// @ts-check
import { visit } from "../chat/storage.js";
import { changesOf, INPUTS, problemOf } from "./fields.js";
/** @import {Task, TaskPreview} from "./types" */

const STORAGE_KEY = "todo.tasks.editing";

/** What is written in the inputs of an edited task. It survives scrolling and a reload. */
export class Editing {
  /** Why the task cannot be saved. */
  problem = "";
  /** The rendered files that agents wrote for the task. @type {unknown} */
  files;
  /** @type {Record<string, string>} */
  written;
  #before;
  /** @type {{text: string, understood: TaskPreview | null} | null} */
  #repeat = null;

  /** @param {Task} task before editing; only differences are saved */
  constructor(task) {
    this.task = task;
    this.written = Object.fromEntries(INPUTS.map(({ name, text }) => [name, text(task)]));
    this.#before = { ...this.written };
  }

  /** Restores what was edited when the page was closed. The page may have had other inputs then. */
  static restored() {
    try {
      const { task, written } = JSON.parse(visit.get(STORAGE_KEY) ?? "");
      const editing = new Editing(task);
      for (const { name } of INPUTS) editing.written[name] = written[name] ?? editing.written[name];
      return editing;
    } catch {
      return null;
    }
  }

  static forget() {
    visit.set(STORAGE_KEY, null);
  }

  /** @param {string} name @param {string} value */
  write(name, value) {
    this.written[name] = value;
    this.store();
  }

  store() {
    visit.set(STORAGE_KEY, this.changed ? JSON.stringify({ task: this.task, written: this.written }) : null);
  }

  get changed() {
    return Object.keys(this.written).some((name) => this.differs(name));
  }

  /** The repeat in words, if the server has not read it yet. */
  get unreadRepeat() {
    const text = this.written.repeat.trim();
    return this.differs("repeat") && this.#repeat?.text !== text ? text : "";
  }

  /** @param {string} text @param {TaskPreview | null} understood */
  readRepeat(text, understood) {
    this.#repeat = { text, understood };
  }

  /** @param {string} name @param {Record<string, string>} [written] */
  differs(name, written = this.written) {
    return written[name].trim() !== this.#before[name].trim();
  }

  /** Returns the fields to send and how the task is shown until then; null if it cannot be saved for `problem`. */
  changes() {
    const { task } = this;
    const understood = this.written.repeat.trim() && this.differs("repeat") ? (this.#repeat?.understood ?? null) : null;
    const written = { ...this.written };
    if (understood?.repeat) {
      // A repeat such as "every Monday at 9" also says when it begins.
      written.date ||= understood.due ?? "";
      written.time ||= understood.time ?? "";
    }
    const edited = { task, written, understood, differs: (/** @type {string} */ name) => this.differs(name, written) };
    this.problem = problemOf(edited);
    return this.problem ? null : changesOf(edited);
  }
}

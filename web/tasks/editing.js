// @ts-check
import { changesOf, INPUTS, problemOf } from "./fields.js";
/** @import {Unsaved} from "../unsaved.js" */
/** @import {Problem} from "./fields.js" */
/** @import {Task, TaskPreview, View} from "./types" */

const PREFIX = "edit/";

/**
 * What is typed in the editor of a task. `before` are the texts of the inputs before, `view` is where the editor is open.
 * @typedef {{task: Task, before: Record<string, string>, written: Record<string, string>, view: View | null}} StoredEdit
 */

/** What is written in the inputs of an edited task. It is stored, and stays in its place whatever happens to the task elsewhere. */
export class Editing {
  /** Why the task cannot be saved. @type {Problem | null} */
  problem = null;
  /** The rendered files that agents wrote for the task. @type {unknown} */
  files;
  /** @type {Record<string, string>} */
  written;
  /** What inputs would have now, as they were changed elsewhere. @type {Map<string, string>} */
  elsewhere = new Map();
  /** The view in which the editor stays in place. @type {View | null} */
  view = null;
  /** The task as it is now. @type {Task} */
  latest;
  /** @type {Record<string, string>} */
  #before;
  /** The tasks above it, once it is shown. @type {number[] | null} */
  #above = null;
  /** @type {{text: string, understood: TaskPreview | null} | null} */
  #repeat = null;
  #unsaved;

  /** @param {Task} task before editing; only differences are saved @param {Unsaved} unsaved */
  constructor(task, unsaved) {
    this.task = this.latest = task;
    this.#unsaved = unsaved;
    this.#before = textsOf(task);
    this.written = { ...this.#before };
  }

  /** Restores what was typed. The page may have had other inputs then. @param {StoredEdit} stored @param {Unsaved} unsaved */
  static restore({ task, before, written, view }, unsaved) {
    const editing = new Editing(task, unsaved);
    for (const { name } of INPUTS) {
      editing.#before[name] = before[name] ?? editing.#before[name];
      editing.written[name] = written[name] ?? editing.#before[name];
    }
    editing.view = view;
    return editing;
  }

  /** Returns what was typed last in an editor that is still open. @param {Unsaved} unsaved */
  static stored(unsaved) {
    const last = unsaved.rows(PREFIX).findLast(({ value }) => value.view !== null);
    return last ? Editing.restore(last.value, unsaved) : null;
  }

  /** Opens a task, with what was typed and not saved. @param {Task} task @param {Unsaved} unsaved */
  static of(task, unsaved) {
    const stored = unsaved.get(PREFIX + task.id);
    return stored ? Editing.restore(stored, unsaved) : new Editing(task, unsaved);
  }

  /** Whether something is typed for this task that is not saved. @param {number} id @param {Unsaved} unsaved */
  static has(id, unsaved) {
    return unsaved.get(PREFIX + id) !== undefined;
  }

  /** Fills the inputs that were not changed since with what was typed before and is rejected. @param {StoredEdit} edit */
  fill({ before, written }) {
    for (const name of Object.keys(this.written).filter((name) => name in written && !this.differs(name))) {
      this.#before[name] = before[name];
      this.written[name] = written[name];
    }
  }

  /** @param {string} name @param {string} value */
  write(name, value) {
    this.written[name] = value;
    this.store();
  }

  store() {
    this.#unsaved.set(PREFIX + this.task.id, this.changed ? this.toStored() : null);
  }

  forget() {
    this.#unsaved.delete(PREFIX + this.task.id);
  }

  /** @returns {StoredEdit} */
  toStored() {
    return { task: this.task, before: { ...this.#before }, written: { ...this.written }, view: this.view };
  }

  /** Whether it was typed before the user signed in, perhaps by somebody else. */
  get isEarlier() {
    return this.#unsaved.isEarlier(PREFIX + this.task.id);
  }

  get changed() {
    return Object.keys(this.written).some((name) => this.differs(name));
  }

  /** Whether the task was deleted elsewhere. */
  get deleted() {
    return this.latest.status === "deleted";
  }

  /** Takes the number that the server gave to a new task. @param {number} id */
  renumber(id) {
    this.forget();
    this.task = { ...this.task, id };
    this.latest = { ...this.latest, id };
    this.store();
  }

  /** Compares the inputs with the task as it is now; takes over what is neither typed nor focused. @param {Task} latest @param {string | undefined} focused the input with the focus */
  compare(latest, focused) {
    this.latest = latest;
    if (this.deleted) return;
    for (const [name, theirs] of Object.entries(textsOf(latest))) {
      this.elsewhere.delete(name);
      if (theirs === this.#before[name]) continue;
      if (theirs === this.written[name]) this.#before[name] = theirs;
      else if (this.differs(name) || name === focused) this.elsewhere.set(name, theirs);
      else this.#before[name] = this.written[name] = theirs;
    }
    this.store();
  }

  /** Settles a difference: keeps what is typed here, or takes what was written elsewhere. @param {string} name @param {boolean} mine */
  settle(name, mine) {
    const theirs = this.elsewhere.get(name);
    if (theirs === undefined) return;
    this.#before[name] = theirs;
    if (!mine) this.written[name] = theirs;
    this.elsewhere.delete(name);
    this.store();
  }

  /** Returns the tasks of the view with the edited one as it was, in its place. @param {Task[]} tasks */
  hold(tasks) {
    const { id } = this.task;
    const found = tasks.findIndex((task) => task.id === id);
    const others = found < 0 ? tasks : tasks.filter((task) => task.id !== id);
    const places = new Map(others.map((task, at) => [task.id, at]));
    const neighbour = this.#above?.findLast((above) => places.has(above));
    const at = this.#above ? (places.get(neighbour ?? NaN) ?? -1) + 1 : Math.max(0, found);
    this.#above = others.slice(0, at).map((task) => task.id);
    return [...others.slice(0, at), this.task, ...others.slice(at)];
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
    const { latest: task } = this;
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

/** @param {Task} task @returns {Record<string, string>} */
const textsOf = (task) => Object.fromEntries(INPUTS.map(({ name, text }) => [name, text(task)]));

// @ts-check
import { addRequest as creating, changeRequest, deleteRequest, undoRequest } from "./data/api.js";
import { plusDays } from "./language/calendar.js";
import { dayWords } from "../words.js";
import { dueInGrammar } from "./language/phrases.js";
import { LIST } from "../texts.js";
/** @import {HttpError} from "../chat/protocol.js" */
/** @import {NewTask} from "./draft.js" */
/** @import {TaskChange, Outcome} from "./data/pending.js" */
/** @import {Fields, Task, When} from "./types" */
/** @import {Ui} from "./ui.js" */

const AT_ONCE = 100; // tasks of one request
const LINGER = 1200; // ms that a completed task stays in place
const TOAST = 8000; // ms

/** The button of a notice. @typedef {{text: string, act: () => unknown}} Way */
/** A message about a change or an error. `back` undoes it; with `stays` it is shown until the next notice. @typedef {{text: string, danger: boolean, back?: Way, show?: number | null, stays?: boolean}} Notice */

/** The changes that a user can make. Each is shown at once, can be undone, and shows the error if it is rejected. */
export class TaskActions {
  /** @type {Notice | null} */
  notice = null;
  /** Resolves when the last change is reported. @type {Promise<unknown>} */
  #latest = Promise.resolve();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #toast;
  #ui;

  /** @param {Ui} ui */
  constructor(ui) {
    this.#ui = ui;
  }

  /** @param {Task[]} tasks @param {boolean} done */
  async tick(tasks, done) {
    const status = done ? "completed" : "pending";
    this.#ui.reader.delayRefresh(LINGER);
    const completed = done ? new Date().toISOString() : null;
    const summary = done ? LIST.was.completed : LIST.was.reopened;
    await this.#change(tasks, { status }, { status, completed }, summary);
  }

  /** @param {Task[]} tasks @param {Pick<When, "day" | "time"> | null} when null: no date */
  async move(tasks, when) {
    const due = dueInGrammar(when?.day ?? null, when?.time);
    const as = when ? { due: when.day, ...(when.time && { time: when.time }) } : { due: null, time: null };
    const summary = when ? LIST.was.moved(dayWords(when.day, this.#ui.today)) : LIST.was.undated;
    await this.#change(tasks, { due }, as, summary);
  }

  /** Moves tasks a day later or earlier, but not into the past. @param {Task[]} tasks @param {1 | -1} days */
  async shift(tasks, days) {
    const { today } = this.#ui;
    const from = (/** @type {Task} */ { due }) => (due && due > today ? due : today);
    const open = tasks.filter((task) => task.status === "pending" && (days > 0 || from(task) > today));
    if (open.length === 0) return;
    const as = (/** @type {Task} */ task) => ({ due: plusDays(from(task), days) });
    const to = open.length === 1 ? LIST.was.moved(dayWords(as(open[0]).due, today)) : LIST.was.changed;
    await this.#change(open, { due: days > 0 ? "+1d" : "-1d" }, as, to);
  }

  /** @param {Task[]} tasks */
  async remove(tasks) {
    const requests = splitIds(tasks).map((ids) => deleteRequest(ids));
    await this.#perform({ requests, ids: ids(tasks), as: { status: "deleted" } }, tasks, LIST.was.deleted);
  }

  /** @param {Task} task @param {Fields} fields @param {Partial<Task>} as @returns {Promise<string | null>} why it was rejected */
  async save(task, fields, as) {
    const { rejected } = await this.#perform({ requests: [changeRequest([task.id], fields)], ids: [task.id], as }, [task], LIST.was.changed);
    return rejected?.message ?? null;
  }

  /** @param {NewTask} task */
  async add(task) {
    const { draft: adding, pending } = this.#ui;
    const { rejected, tasks, batches, notUnderstood } = await pending.send({ requests: [{ ...creating(task.fields), key: task.key }] });
    const doubts = notUnderstood.map((words) => ` ${LIST.notADate(words)}`).join("");
    if (!rejected) this.#notify(`${LIST.was.added} “${tasks[0]?.title ?? task.text}”${doubts}`, batches, tasks[0]?.id);
    else if (rejected.status === 401) this.showError(rejected);
    else this.#showNotice({ text: LIST.notAdded(task.text.trim(), rejected.message), danger: true });
    adding.removeUnsent(task);
    if (rejected && !adding.text) adding.write(task.text);
    else if (rejected) adding.setAside(task.text);
    this.#ui.changed();
  }

  /** Undoes the change of the notice. */
  async undo() {
    const back = this.notice?.back;
    this.dismiss();
    await back?.act();
  }

  /** @param {string[]} batches */
  async #revert(batches) {
    const { rejected } = await this.#ui.pending.send({ requests: [...batches].reverse().map(undoRequest) });
    if (rejected) this.showError(rejected);
    else this.#notify(LIST.was.undone, []);
  }

  /** Undoes the last change, also one without a response yet. */
  async undoLast() {
    await this.#latest;
    await this.undo();
  }

  /** Restores deleted tasks. @param {Task[]} tasks */
  async restore(tasks) {
    const requests = splitIds(tasks).map(([id, ...also]) => changeRequest([id, ...also], { undo: true }));
    await this.#perform({ requests, ids: ids(tasks), as: { status: "pending" } }, tasks, LIST.was.restored);
  }

  /** @param {Task[]} tasks @param {Fields} fields @param {TaskChange["as"]} as @param {string} summary */
  #change(tasks, fields, as, summary) {
    const requests = splitIds(tasks).map((ids) => changeRequest(ids, fields));
    return this.#perform({ requests, ids: ids(tasks), as }, tasks, summary);
  }

  /** @param {TaskChange} act @param {Task[]} tasks @param {string} summary @returns {Promise<Outcome>} */
  #perform(act, tasks, summary) {
    const outcome = this.#report(act, tasks, summary);
    this.#latest = outcome;
    return outcome;
  }

  /** @param {TaskChange} act @param {Task[]} tasks @param {string} summary @returns {Promise<Outcome>} */
  async #report(act, tasks, summary) {
    const outcome = await this.#ui.pending.send(act);
    const what = tasks.length === 1 ? `“${tasks[0].title}”` : LIST.tasks(tasks.length);
    if (outcome.rejected) this.showError(outcome.rejected);
    else this.#notify(`${summary}: ${what}${describeNext(outcome, tasks, this.#ui.today)}`, outcome.batches);
    return outcome;
  }

  /** @param {string} text @param {string[]} batches the batches that undo it @param {number | null} [show] a task that may be in another view */
  #notify(text, batches, show = null) {
    this.#ui.announce(text);
    const back = batches.length > 0 ? { text: LIST.undo, act: () => this.#revert(batches) } : undefined;
    this.#showNotice({ text, danger: false, back, show });
  }

  /** Shows a notice about an unsaved text and a button that brings it back. @param {string} text @param {Way} back */
  offer(text, back, danger = false) {
    if (!danger) this.#ui.announce(text);
    this.#showNotice({ text, danger, back, stays: true });
  }

  /** @param {HttpError} error */
  showError(error) {
    if (error.status === 401) this.#ui.reader.failed(error);
    else this.#showNotice({ text: error.message, danger: true });
  }

  dismiss() {
    this.notice = null;
    this.#ui.changed();
  }

  close() {
    clearTimeout(this.#toast);
  }

  /** @param {Notice} notice */
  #showNotice(notice) {
    this.notice = notice;
    const leave = () => {
      clearTimeout(this.#toast);
      if (notice.stays) return;
      this.#toast = setTimeout(() => {
        if (this.notice !== notice) return;
        if (this.#ui.reading) leave();
        else this.dismiss();
      }, TOAST);
    };
    leave();
    this.#ui.changed();
  }
}

/** Describes when the next task of a repeat is due. @param {Outcome} outcome @param {Task[]} tasks @param {string} today */
function describeNext({ tasks: changed }, tasks, today) {
  const known = new Set(ids(tasks));
  const next = tasks.length === 1 ? changed.find(({ id, due }) => !known.has(id) && due) : undefined;
  return next?.due ? ` · ${LIST.nextOne(dayWords(next.due, today))}` : "";
}

/** @param {Task[]} tasks */
const ids = (tasks) => tasks.map(({ id }) => id);

/** @param {Task[]} tasks */
function splitIds(tasks) {
  const all = ids(tasks);
  return all.flatMap((_, at) => (at % AT_ONCE === 0 ? [all.slice(at, at + AT_ONCE)] : []));
}

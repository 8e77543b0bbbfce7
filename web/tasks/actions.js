// @ts-check
import { addRequest as creating, changeRequest, deleteRequest, moveOverdueRequest } from "./data/api.js";
import { dayWords, dueInGrammar, plusDays } from "../words.js";
import { labelsOf } from "./fields.js";
import { LIST } from "../texts.js";
/** @import {HttpError} from "../chat/protocol.js" */
/** @import {Outcome, StoredChange, TaskChange} from "./data/pending.js" */
/** @import {StoredEdit} from "./editing.js" */
/** @import {Fields, Task, When} from "./types" */
/** @import {Reverted} from "./undo.js" */
/** @import {Ui} from "./ui.js" */

const AT_ONCE = 100; // tasks of one request
const LINGER = 1200; // ms that a completed task stays in place
const TOAST = 8000; // ms

/** The button of a notice. @typedef {{text: string, act: () => unknown, command?: "undo" | "redo"}} Way */
/** The fields that are shown until a change is saved. @typedef {Partial<Task> | ((task: Task) => Partial<Task>)} Shown */
/** A message about a change or an error. `back` undoes it; with `stays` it is shown until the next notice; `reminder` is why the task does not remind. @typedef {{text: string, danger: boolean, back?: Way, show?: number | null, stays?: boolean, reminder?: string}} Notice */

/** The changes that a user can make. Each is shown at once, can be undone, and shows the error if it is rejected. */
export class TaskActions {
  /** @type {Notice | null} */
  notice = null;
  /** Tasks that the user ticks, moves or deletes: the focus may go on to their neighbours. @type {Set<number>} */
  leaving = new Set();
  /** The order of the newest change that was withdrawn: what became of older ones does not replace its notice. */
  #withdrawn = 0;
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

  /** @param {Task[]} tasks @param {When | null} when null: no date */
  async move(tasks, when) {
    const due = dueInGrammar(when?.day ?? null, when?.time);
    const as = when ? { due: when.day, ...(when.time && { time: when.time }) } : { due: null, time: null };
    const summary = when ? LIST.was.moved(dayWords(when.day, this.#ui.today)) : LIST.was.undated;
    await this.#change(tasks, { due }, as, summary);
  }

  /** @param {Task[]} tasks @param {NonNullable<Task["priority"]> | "none"} priority */
  async setPriority(tasks, priority) {
    await this.#change(tasks, { priority }, { priority: priority === "none" ? null : priority }, LIST.was.changed);
  }

  /** Moves all overdue tasks to today, also those that are not loaded. @param {(Task | null)[]} tasks */
  async moveOverdue(tasks) {
    const { today } = this.#ui;
    const loaded = tasks.filter((task) => task !== null);
    const as = Object.fromEntries(loaded.map(({ id, due, time }) => [id, { due: today, time: due === today ? null : time }]));
    const summary = `${LIST.was.moved(dayWords(today, today))}: ${LIST.tasks(tasks.length)}`;
    await this.#ui.pending.send({ requests: [moveOverdueRequest()], as, summary });
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

  /** Sets the labels of one task, or adds labels to several. @param {Task[]} tasks @param {string} text */
  async label(tasks, text) {
    const labels = labelsOf(text);
    if (tasks.length === 1) return void (await this.#change(tasks, { labels }, { labels }, LIST.was.changed));
    if (labels.length === 0) return;
    const as = (/** @type {Task} */ task) => ({ labels: [...new Set([...task.labels, ...labels])].sort() });
    await this.#change(tasks, { add_labels: labels }, as, LIST.was.changed);
  }

  /** @param {Task[]} tasks */
  async remove(tasks) {
    const requests = splitIds(tasks).map((ids) => deleteRequest(ids));
    await this.#send(requests, tasks, { status: "deleted" }, LIST.was.deleted, { leaves: true });
  }

  /** Saves what was typed in the editor; restores a task that was deleted elsewhere. @param {StoredEdit} edit @param {Fields} fields @param {Partial<Task>} as @param {boolean} deleted @returns {Promise<boolean>} whether it was saved */
  async save(edit, fields, as, deleted) {
    const { task } = edit;
    const restoring = deleted ? [changeRequest([task.id], { undo: true })] : [];
    const changing = Object.keys(fields).length > 0 ? [changeRequest([task.id], fields)] : [];
    const shown = deleted ? { status: /** @type {const} */ ("pending"), ...as } : as;
    const summary = deleted ? LIST.was.restored : LIST.was.changed;
    const { rejected } = await this.#send([...restoring, ...changing], [task], shown, summary, { edit });
    return rejected === null;
  }

  /** @param {string} text as it was typed @param {object} fields @param {Task} shown until it is saved */
  async add(text, fields, shown) {
    await this.#ui.pending.send({ requests: [creating(fields)], added: shown, text, summary: LIST.was.added });
  }

  /** Reports what became of a change, also of one that was made before a reload. @param {StoredChange} change @param {Outcome} outcome */
  settled(change, outcome) {
    const { rejected, tasks, batches, notUnderstood } = outcome;
    const { summary, added, text = "" } = change;
    if (rejected) return this.#rejected(change, rejected);
    const { reverts, before = {} } = change;
    if (!reverts) this.#ui.undo.remember({ batches, before });
    if (change.order < this.#withdrawn) return;
    if (reverts) return this.#notify(summary, { batches, about: reverts.about, redo: !reverts.redo });
    if (added) {
      const doubts = notUnderstood.map((words) => LIST.unread(words)).join(" ");
      const about = `${summary} “${tasks[0]?.title ?? text}”`;
      this.#notify(doubts ? `${about}. ${doubts}` : about, { batches, about }, tasks[0]?.id);
    } else this.#notify(`${summary}${describeNext(change, tasks, this.#ui.today)}`, { batches, about: summary });
    void this.#explainReminder(change, tasks);
  }

  /** Adds to the notice about a change why its reminder does not reach the user. @param {StoredChange} change @param {Task[]} tasks */
  async #explainReminder(change, tasks) {
    const { notice } = this;
    const { findReminderProblem } = await this.#ui.loadControls();
    const reminder = await findReminderProblem(change, tasks, this.#ui.api);
    if (!reminder || !notice || this.notice !== notice) return;
    this.#ui.announce(reminder);
    this.#showNotice({ ...notice, reminder });
  }

  /** Says that a change is undone before it was sent. @param {StoredChange} change */
  reportWithdrawn({ order, summary }) {
    this.#withdrawn = order;
    this.say(`${LIST.was.undone}: ${summary}`);
  }

  /** Says why a change was rejected, and gives back what was typed. @param {StoredChange} change @param {HttpError} error */
  #rejected({ added, text, edit }, error) {
    if (edit) return this.#ui.editor.editAgain(edit, error.message);
    if (!added || text === undefined) return this.showError(error);
    this.#showNotice({ text: LIST.notAdded(text.trim(), error.message), danger: true });
    this.#ui.draft.giveBack(text);
  }

  /** Whether the notice offers to bring back a text that the user has just discarded. */
  get bringsBack() {
    return Boolean(this.notice?.stays && !this.notice.danger);
  }

  /** Undoes the change of the notice. */
  async undo() {
    const back = this.notice?.back;
    this.dismiss();
    await back?.act();
  }

  /** Restores deleted tasks. @param {Task[]} tasks */
  async restore(tasks) {
    const requests = splitIds(tasks).map((ids) => changeRequest(ids, { undo: true }));
    await this.#send(requests, tasks, { status: "pending" }, LIST.was.restored);
  }

  /** @param {Task[]} tasks @param {Fields} fields @param {Shown} as @param {string} summary */
  #change(tasks, fields, as, summary) {
    const requests = splitIds(tasks).map((ids) => changeRequest(ids, fields));
    return this.#send(requests, tasks, as, summary, { leaves: true });
  }

  /** @param {TaskChange["requests"]} requests @param {Task[]} tasks @param {Shown} as @param {string} what @param {{leaves?: boolean, edit?: StoredEdit}} [more] */
  #send(requests, tasks, as, what, { leaves = false, edit } = {}) {
    for (const { id } of leaves ? tasks : []) this.leaving.add(id);
    const summary = `${what}: ${tasks.length === 1 ? `“${tasks[0].title}”` : LIST.tasks(tasks.length)}`;
    const shown = Object.fromEntries(tasks.map((task) => [task.id, typeof as === "function" ? as(task) : as]));
    const before = Object.fromEntries(tasks.map((task) => [task.id, fieldsBefore(task, shown[task.id])]));
    return this.#ui.pending.send({ requests, as: shown, before, summary, ...(edit && { edit }) });
  }

  /** @param {string} text @param {Reverted} reverted what its button undoes, or does again @param {number | null} [show] a task that may be in another view */
  #notify(text, reverted, show = null) {
    this.#ui.announce(text);
    /** @type {"undo" | "redo"} */
    const command = reverted.redo ? "redo" : "undo";
    const back = { text: LIST[command], act: () => this.#ui.undo.revert(reverted), command };
    this.#showNotice({ text, danger: false, ...(reverted.batches.length > 0 && { back }), show });
  }

  /** Says something that can only be read. @param {string} text */
  say(text) {
    this.#ui.announce(text);
    this.#showNotice({ text, danger: false });
  }

  /** @param {string} text */
  showProblem(text) {
    this.#showNotice({ text, danger: true });
  }

  /** Shows a notice about an unsaved text and a button that brings it back. @param {string} text @param {Way} back */
  offer(text, back, danger = false) {
    if (!danger) this.#ui.announce(text);
    this.#showNotice({ text, danger, back, stays: true });
  }

  /** @param {HttpError} error */
  showError(error) {
    if (error.status === 401) this.#ui.reader.failed(error);
    else this.showProblem(error.message);
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

/** Describes when the next task of a repeat is due. @param {StoredChange} change @param {Task[]} tasks @param {string} today */
function describeNext({ as = {} }, tasks, today) {
  const next = Object.keys(as).length === 1 ? tasks.find(({ id, due }) => !(id in as) && due) : undefined;
  return next?.due ? ` · ${LIST.nextOne(dayWords(next.due, today))}` : "";
}

/** Returns what the fields of a change were before it. @param {Task} task @param {Partial<Task>} shown */
const fieldsBefore = (task, shown) => Object.fromEntries(Object.keys(shown).map((name) => [name, task[/** @type {keyof Task} */ (name)]]));

/** @param {Task[]} tasks */
function splitIds(tasks) {
  const all = tasks.map(({ id }) => id);
  return all.flatMap((_, at) => (at % AT_ONCE === 0 ? [all.slice(at, at + AT_ONCE)] : []));
}

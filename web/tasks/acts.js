// @ts-check
import { adding as creating, changing, deleting, undoing } from "./data/api.js";
import { plusDays } from "./language/calendar.js";
import { dayWords } from "../words.js";
import { dueInGrammar } from "./language/phrases.js";
import { LIST } from "../texts.js";
/** @import {HttpError} from "../chat/protocol.js" */
/** @import {NewTask} from "./adding.js" */
/** @import {Act, Outcome} from "./data/wishes.js" */
/** @import {Fields, Task, When} from "./types" */
/** @import {Ui} from "./ui.js" */

const AT_ONCE = 100; // tasks: as many as one request changes
const LINGER = 1200; // ms that a ticked task stays where it is
const TOAST = 8000; // ms

/** What a button of a notice does. @typedef {{text: string, act: () => unknown}} Way */
/** Something that has just been done, or was refused. `back`: the way back; `stays`: as long as nothing else is told. @typedef {{text: string, danger: boolean, back?: Way, show?: number | null, stays?: boolean}} Notice */

/** What a person can do to tasks. Each is shown at once, can be taken back, and says why when it is refused. */
export class Acts {
  /** What is told. @type {Notice | null} */
  notice = null;
  /** Ends when what was done last is told. @type {Promise<unknown>} */
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
    this.#ui.reader.linger(LINGER);
    const completed = done ? new Date().toISOString() : null;
    const said = done ? LIST.was.completed : LIST.was.reopened;
    await this.#change(tasks, { status }, { status, completed }, said);
  }

  /** @param {Task[]} tasks @param {Pick<When, "day" | "time"> | null} when null: no date */
  async move(tasks, when) {
    const due = dueInGrammar(when?.day ?? null, when?.time);
    const as = when ? { due: when.day, ...(when.time && { time: when.time }) } : { due: null, time: null };
    const said = when ? LIST.was.moved(dayWords(when.day, this.#ui.today)) : LIST.was.undated;
    await this.#change(tasks, { due }, as, said);
  }

  /** A day later or earlier, but not into the past. @param {Task[]} tasks @param {1 | -1} days */
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
    const requests = portions(tasks).map((ids) => deleting(ids));
    await this.#done({ requests, ids: ids(tasks), as: { status: "deleted" } }, tasks, LIST.was.deleted);
  }

  /** @param {Task} task @param {Fields} fields @param {Partial<Task>} as @returns {Promise<string | null>} why it was refused */
  async save(task, fields, as) {
    const { refused } = await this.#done({ requests: [changing([task.id], fields)], ids: [task.id], as }, [task], LIST.was.changed);
    return refused?.message ?? null;
  }

  /** @param {NewTask} task */
  async add(task) {
    const { adding, wishes } = this.#ui;
    const { refused, tasks, batches, notUnderstood } = await wishes.act({ requests: [{ ...creating(task.fields), key: task.key }] });
    const doubts = notUnderstood.map((words) => ` ${LIST.notADate(words)}`).join("");
    if (!refused) this.#notify(`${LIST.was.added} “${tasks[0]?.title ?? task.text}”${doubts}`, batches, tasks[0]?.id);
    else if (refused.status === 401) this.refuse(refused);
    else this.#say({ text: LIST.notAdded(task.text.trim(), refused.message), danger: true });
    adding.forget(task);
    if (refused && !adding.text) adding.write(task.text);
    else if (refused) adding.setAside(task.text);
    this.#ui.changed();
  }

  /** Take back what the notice tells of. */
  async undo() {
    const back = this.notice?.back;
    this.dismiss();
    await back?.act();
  }

  /** @param {string[]} batches */
  async #revert(batches) {
    const { refused } = await this.#ui.wishes.act({ requests: [...batches].reverse().map(undoing) });
    if (refused) this.refuse(refused);
    else this.#notify(LIST.was.undone, []);
  }

  /** Take back what was done last, which the server may not have answered yet. */
  async undoLast() {
    await this.#latest;
    await this.undo();
  }

  /** Bring deleted tasks back. @param {Task[]} tasks */
  async restore(tasks) {
    const requests = portions(tasks).map(([id, ...also]) => changing([id, ...also], { undo: true }));
    await this.#done({ requests, ids: ids(tasks), as: { status: "pending" } }, tasks, LIST.was.restored);
  }

  /** @param {Task[]} tasks @param {Fields} fields @param {Act["as"]} as @param {string} said */
  #change(tasks, fields, as, said) {
    const requests = portions(tasks).map((ids) => changing(ids, fields));
    return this.#done({ requests, ids: ids(tasks), as }, tasks, said);
  }

  /** @param {Act} act @param {Task[]} tasks @param {string} said @returns {Promise<Outcome>} */
  #done(act, tasks, said) {
    const told = this.#told(act, tasks, said);
    this.#latest = told;
    return told;
  }

  /** @param {Act} act @param {Task[]} tasks @param {string} said @returns {Promise<Outcome>} */
  async #told(act, tasks, said) {
    const outcome = await this.#ui.wishes.act(act);
    const what = tasks.length === 1 ? `“${tasks[0].title}”` : LIST.tasks(tasks.length);
    if (outcome.refused) this.refuse(outcome.refused);
    else this.#notify(`${said}: ${what}${nextOf(outcome, tasks, this.#ui.today)}`, outcome.batches);
    return outcome;
  }

  /** @param {string} text @param {string[]} batches what it can be taken back with @param {number | null} [show] a task that may be elsewhere */
  #notify(text, batches, show = null) {
    this.#ui.announce(text);
    const back = batches.length > 0 ? { text: LIST.undo, act: () => this.#revert(batches) } : undefined;
    this.#say({ text, danger: false, back, show });
  }

  /** Tell of something written that is not saved, and how to have it again. @param {string} text @param {Way} back */
  offer(text, back, danger = false) {
    if (!danger) this.#ui.announce(text);
    this.#say({ text, danger, back, stays: true });
  }

  /** @param {HttpError} error */
  refuse(error) {
    if (error.status === 401) this.#ui.reader.failed(error);
    else this.#say({ text: error.message, danger: true });
  }

  dismiss() {
    this.notice = null;
    this.#ui.changed();
  }

  close() {
    clearTimeout(this.#toast);
  }

  /** @param {Notice} notice */
  #say(notice) {
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

/** Of a task that repeats, when the next one is due. @param {Outcome} outcome @param {Task[]} tasks @param {string} today */
function nextOf({ tasks: changed }, tasks, today) {
  const known = new Set(ids(tasks));
  const next = tasks.length === 1 ? changed.find(({ id, due }) => !known.has(id) && due) : undefined;
  return next?.due ? ` · ${LIST.nextOne(dayWords(next.due, today))}` : "";
}

/** @param {Task[]} tasks */
const ids = (tasks) => tasks.map(({ id }) => id);

/** @param {Task[]} tasks */
function portions(tasks) {
  const all = ids(tasks);
  return all.flatMap((_, at) => (at % AT_ONCE === 0 ? [all.slice(at, at + AT_ONCE)] : []));
}

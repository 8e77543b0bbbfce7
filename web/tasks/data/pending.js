// @ts-check
import { ConnectionLost, HttpError } from "../../chat/protocol.js";
import { newKey } from "../../http.js";
import { isRequest } from "./api.js";
/** @import {Unsaved} from "../../unsaved.js" */
/** @import {StoredEdit} from "../editing.js" */
/** @import {Api, ChangeRequest, Operation} from "./api.js" */
/** @import {Changed, Task} from "../types" */

/**
 * A user's change, as one or more requests.
 * @typedef {object} TaskChange
 * @property {Operation[]} requests
 * @property {string} summary what the user reads once it is saved
 * @property {Record<number, Partial<Task>>} [as] the fields of each task that are shown until then
 * @property {Task} [added] the new task as it is shown until then
 * @property {string} [text] the new task as it was typed
 * @property {StoredEdit} [edit] what was typed in the editor
 * @property {{about: string, redo: boolean}} [reverts] of an undo or redo: which change it undoes or does again
 * @property {Record<number, Partial<Task>>} [before] the fields of each task before it
 */
/**
 * A change as it is stored until the server has confirmed it.
 * @typedef {Omit<TaskChange, "requests"> & {key: string, order: number, requests: ChangeRequest[], sent?: boolean, again?: boolean, earlier?: boolean}} StoredChange
 */
/** The result of a change. @typedef {{tasks: Task[], batches: string[], notUnderstood: string[], rejected: HttpError | null}} Outcome */
/** What is shown of a saved change until the list is loaded again. @typedef {{as: Record<number, Partial<Task>>, added?: Task}} Shown */
/**
 * @typedef {object} Owner
 * @property {() => boolean} lost whether the server cannot be reached
 * @property {() => Promise<void>} again resolves once it can be reached
 * @property {() => void} here says that it can be reached
 * @property {() => void} changed
 * @property {() => Promise<void>} renew
 * @property {(change: StoredChange, outcome: Outcome) => void} settled
 * @property {(from: number, to: number) => void} renamed a new task has got its number
 * @property {(error: HttpError) => void} unauthorized
 */

const PREFIX = "change/";
const TOO_OLD = 8 * 24 * 60 * 60 * 1000; // ms, after which the server may have forgotten the keys
const TOO_MANY = 429;
const PAUSE = 5000; // ms after too many requests

/**
 * Changes that the server has not confirmed. They are stored before they are sent, in order and with keys, so that they
 * can be sent again after a lost response or a reload. A new task has a negative id until the server has answered.
 */
export class PendingChanges {
  /** Those that are sent, in order. @type {StoredChange[]} */
  #changes = [];
  /** Those that are not sent without asking: they are too old, or (`earlier`) of an earlier session. @type {StoredChange[]} */
  old = [];
  /** New tasks. @type {Task[]} */
  added = [];
  /** @type {Set<Shown>} */
  #saved = new Set();
  /** The fields of each task that are shown. @type {Map<number, Partial<Task>>} */
  #shown = new Map();
  /** Tasks with a change that is not saved. @type {Set<number>} */
  #unsavedIds = new Set();
  /** The numbers of tasks that were added here, by their first id, and the other way round. @type {Map<number, number>} */
  #numbers = new Map();
  /** @type {Map<number, number>} */
  #firstIds = new Map();
  /** @type {Map<string, (outcome: Outcome) => void>} */
  #waiting = new Map();
  /** Callbacks for when no change is left. @type {(() => void)[]} */
  #idle = [];
  #order = 0;
  #sending = false;
  #closed = false;
  #api;
  #unsaved;
  #owner;

  /** @param {Api} api @param {Unsaved} unsaved @param {Owner} owner */
  constructor(api, unsaved, owner) {
    this.#api = api;
    this.#unsaved = unsaved;
    this.#owner = owner;
    this.#read();
  }

  /** The number of changes that will be sent. */
  get open() {
    return this.#changes.length;
  }

  /** Returns the task with its pending changes. @param {Task} task @returns {Task} */
  apply(task) {
    const shown = this.#shown.get(task.id);
    return shown ? { ...task, ...shown } : task;
  }

  /** Whether a change of the task is not saved yet. @param {number} id */
  isUnsaved(id) {
    return this.#unsavedIds.has(id);
  }

  /** Returns the id under which a task was shown first, which names its row. @param {number} id */
  firstId(id) {
    return this.#firstIds.get(id) ?? id;
  }

  /** Returns the number of a task that may have been added here. @param {number} id */
  number(id) {
    return this.#numbers.get(id) ?? id;
  }

  /** Stores, shows and sends a change; resolves once the server has answered. @param {TaskChange} change @returns {Promise<Outcome>} */
  send(change) {
    this.#order = Math.max(Date.now(), this.#order + 1);
    const order = this.#order;
    const requests = change.requests.map((request) => ({ key: newKey(), ...request }));
    const added = change.added && { ...change.added, id: -order };
    let stored = /** @type {StoredChange} */ ({ ...change, requests, key: newKey(), order, ...(added && { added }) });
    for (const [from, to] of this.#numbers) stored = renumber(stored, from, to);
    this.#store(stored);
    void this.#unsaved.flushSoon(); // what a page stores when it is closed is sometimes lost
    this.#owner.changed();
    /** @type {Promise<Outcome>} */
    const outcome = new Promise((resolve) => this.#waiting.set(stored.key, resolve));
    void this.resume();
    return outcome;
  }

  /** Sends what is stored. */
  async resume() {
    this.#read();
    if (this.#sending || this.#closed || !this.#unsaved.isConfirmed) return;
    this.#sending = true;
    let next;
    while (!this.#closed && (next = this.#changes.find(isComplete)) && (await this.#save(next)));
    this.#sending = false;
  }

  /** Sends changes that are not sent without asking. @param {StoredChange[]} changes */
  sendAgain(changes) {
    for (const { earlier: _, ...change } of changes) {
      this.#unsaved.trust(PREFIX + change.key);
      this.#store({ ...change, again: true, order: Math.min(change.order, Date.now()) });
    }
    this.#owner.changed();
    void this.resume();
  }

  /** @param {StoredChange} change */
  discard(change) {
    this.#remove(change);
    void this.#unsaved.flushSoon();
    this.#owner.changed();
  }

  /** Removes a change that was not sent yet; returns whether there was one. @param {string} key */
  withdraw(key) {
    const change = this.#changes.find((one) => one.key === key && !one.sent);
    if (change) this.discard(change);
    return change !== undefined;
  }

  /** Resolves once the server has answered all changes. */
  async answered() {
    if (this.#changes.length > 0) await new Promise((resolve) => this.#idle.push(() => resolve(null)));
  }

  /** Removes the newest change if it was not sent yet, and returns it. */
  withdrawNewest() {
    const newest = this.#changes.at(-1);
    return newest && this.withdraw(newest.key) ? newest : null;
  }

  close() {
    this.#closed = true;
  }

  /** Saves a change; returns whether the next one can be sent. @param {StoredChange} change */
  async #save(change) {
    if (this.#owner.lost()) await this.#owner.again();
    if (!this.#unsaved.get(PREFIX + change.key)) return true; // it was withdrawn
    this.#store({ ...change, sent: true });
    await this.#unsaved.flushSoon();
    const outcome = await this.#requestAll(change);
    if (this.#closed) return false;
    if (outcome.rejected?.status === 401) return this.#owner.unauthorized(outcome.rejected), false;
    const shown = this.#settle(this.#unsaved.get(PREFIX + change.key) ?? change, outcome);
    const over = () => {
      if (shown) this.#saved.delete(shown);
      this.#read();
      this.#owner.changed();
    };
    void this.#owner.renew().finally(over);
    return true;
  }

  /** Removes a change that was answered; returns what is shown until the list is loaded again. @param {StoredChange} change @param {Outcome} outcome */
  #settle(change, outcome) {
    /** @type {Shown | null} */
    let shown = null;
    if (!outcome.rejected) {
      const added = change.added && outcome.tasks[0];
      if (added) this.#rename(/** @type {Task} */ (change.added).id, added.id);
      this.#saved.add((shown = { as: change.as ?? {}, ...(added && { added }) }));
    } else if (change.added) this.#dropChangesOf(change.added.id, outcome);
    this.#remove(change);
    void this.#unsaved.flushSoon();
    this.#owner.settled(change, outcome);
    this.#answer(change, outcome);
    this.#owner.changed();
    return shown;
  }

  /** Drops the changes of a task that was not added. @param {number} id @param {Outcome} outcome */
  #dropChangesOf(id, outcome) {
    const dropped = this.#changes.filter(({ requests }) => requests.some(({ ids }) => ids?.includes(id)));
    for (const change of dropped) {
      this.#remove(change);
      this.#answer(change, outcome);
    }
  }

  /** @param {StoredChange} change @param {Outcome} outcome */
  #answer({ key }, outcome) {
    this.#waiting.get(key)?.(outcome);
    this.#waiting.delete(key);
  }

  /** Writes the number of a new task into the changes that wait for it. @param {number} from @param {number} to */
  #rename(from, to) {
    this.#numbers.set(from, to);
    this.#firstIds.set(to, from);
    for (const change of this.#changes) this.#store(renumber(change, from, to));
    this.#owner.renamed(from, to);
  }

  /** @param {StoredChange} change @returns {Promise<Outcome>} */
  async #requestAll({ requests }) {
    /** @type {Outcome} */
    const outcome = { tasks: [], batches: [], notUnderstood: [], rejected: null };
    for (const request of requests) {
      try {
        const { tasks, batch, not_understood: notUnderstood = [] } = await this.#request(request);
        outcome.tasks.push(...tasks);
        outcome.notUnderstood.push(...notUnderstood);
        if (batch) outcome.batches.push(batch);
      } catch (error) {
        if (!(error instanceof HttpError)) throw error;
        outcome.rejected = error;
        break;
      }
    }
    return outcome;
  }

  /** @param {ChangeRequest} request @returns {Promise<Changed>} */
  async #request(request) {
    for (;;) {
      try {
        const changed = await this.#api.change(request);
        this.#owner.here();
        return changed;
      } catch (error) {
        if (error instanceof ConnectionLost) await this.#owner.again();
        else if (error instanceof HttpError && error.status === TOO_MANY) await new Promise((resolve) => setTimeout(resolve, PAUSE));
        else throw error;
      }
    }
  }

  /** @param {StoredChange} change */
  #store(change) {
    this.#unsaved.set(PREFIX + change.key, change);
    this.#read();
  }

  /** @param {StoredChange} change */
  #remove(change) {
    this.#unsaved.delete(PREFIX + change.key);
    this.#read();
  }

  /** Reads the stored changes in order, and drops those that the list did not make. @returns {StoredChange[]} */
  #readRows() {
    const stored = this.#unsaved.rows(PREFIX).flatMap((row) => {
      if (isChange(row.value) && row.key === PREFIX + row.value.key) return [{ ...row.value, earlier: !this.#unsaved.isOfSession(row) }];
      this.#unsaved.delete(row.key);
      return [];
    });
    return stored.sort((one, other) => one.order - other.order);
  }

  /** Reads what is stored and finds out what is shown. */
  #read() {
    const stored = this.#readRows();
    const isHeld = (/** @type {StoredChange} */ change) => change.earlier || isTooOld(change);
    this.old = stored.filter(isHeld);
    this.#changes = stored.filter((change) => !isHeld(change));
    this.#order = Math.max(this.#order, this.#changes.at(-1)?.order ?? 0);
    if (this.#changes.length === 0) for (const go of this.#idle.splice(0)) go();
    const shown = [...this.#saved, ...this.#changes];
    this.added = shown.flatMap(({ added }) => (added ? [added] : []));
    this.#shown = new Map();
    for (const { as = {} } of shown) {
      for (const [id, fields] of Object.entries(as)) this.#shown.set(Number(id), { ...this.#shown.get(Number(id)), ...fields });
    }
    this.#unsavedIds = new Set(this.#changes.flatMap(({ as = {}, added }) => [...Object.keys(as).map(Number), ...(added ? [added.id] : [])]));
  }
}

/** Whether a stored value is a change. @param {any} value @returns {value is StoredChange} */
function isChange(value) {
  const { key, order, requests, summary, text, as, added, edit, before, reverts } = Object(value);
  const isText = (/** @type {unknown} */ one) => typeof one === "string";
  const isFilled = [as, before].every((one) => one === undefined || (Object(one) === one && Object.values(one).every((fields) => Object(fields) === fields)));
  return (
    isText(key) && Number.isSafeInteger(order) && isText(summary) && (text === undefined || isText(text)) && isFilled &&
    Array.isArray(requests) && requests.length > 0 && requests.every(isRequest) &&
    (added === undefined || (Number.isSafeInteger(added?.id) && isText(added.title) && Array.isArray(added.labels))) &&
    (edit === undefined || (Number.isSafeInteger(edit?.task?.id) && Object(edit.before) === edit.before && Object(edit.written) === edit.written)) &&
    (reverts === undefined || isText(reverts?.about))
  );
}

/** Whether a change is too old, or made by a clock that was set back far since. @param {StoredChange} change */
const isTooOld = ({ order, again }) => !again && Math.abs(Date.now() - order) > TOO_OLD;

/** Whether all tasks of a change have a number. @param {StoredChange} change */
const isComplete = ({ requests }) => requests.every(({ ids = [] }) => ids.every((id) => id > 0));

/** @param {StoredChange} change @param {number} from @param {number} to @returns {StoredChange} */
function renumber(change, from, to) {
  const as = change.as && Object.fromEntries(Object.entries(change.as).map(([id, fields]) => [Number(id) === from ? to : Number(id), fields]));
  const requests = change.requests.map((request) => ({ ...request, ...(request.ids && { ids: request.ids.map((id) => (id === from ? to : id)) }) }));
  const edit = change.edit?.task.id === from ? { ...change.edit, task: { ...change.edit.task, id: to } } : change.edit;
  return { ...change, requests, ...(as && { as }), ...(edit && { edit }) };
}

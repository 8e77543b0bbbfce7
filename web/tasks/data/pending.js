// @ts-check
import { ConnectionLost, HttpError } from "../../chat/protocol.js";
import { newKey } from "./api.js";
/** @import {Api} from "./api.js" */
/** @import {Changed, Task} from "../types" */

/** A request without its key. @typedef {{method: string, path: string, body?: object}} Request */
/**
 * A user's change, as one or more requests.
 * @typedef {object} TaskChange
 * @property {(Request & {key?: string})[]} requests
 * @property {number[]} [ids] the changed tasks
 * @property {Partial<Task> | ((task: Task) => Partial<Task>)} [as] the fields that are shown at once
 */
/** The result of a change. @typedef {{tasks: Task[], batches: string[], notUnderstood: string[], rejected: HttpError | null}} Outcome */

/** Changes without a response: shown at once, sent in order, and sent again with the same key if the response is lost. */
export class PendingChanges {
  /** Changes that are shown but not loaded yet. @type {Set<{ids: Set<number>, as: NonNullable<TaskChange["as"]>}>} */
  #shown = new Set();
  /** The number of changes without a response. */
  open = 0;
  #queue = Promise.resolve();
  #api;
  #owner;

  /** @param {Api} api @param {{again: () => Promise<void>, here: () => void, changed: () => void, renew: () => Promise<void>}} owner */
  constructor(api, owner) {
    this.#api = api;
    this.#owner = owner;
  }

  /** Returns the task with its pending changes. @param {Task} task @returns {Task} */
  apply(task) {
    for (const { ids, as } of this.#shown) if (ids.has(task.id)) task = { ...task, ...(typeof as === "function" ? as(task) : as) };
    return task;
  }

  /** Resolves with the response; the change is shown until the list is loaded again. @param {TaskChange} act @returns {Promise<Outcome>} */
  send({ requests, ids = [], as = {} }) {
    const shown = { ids: new Set(ids), as };
    this.#shown.add(shown);
    this.open++;
    this.#owner.changed();
    const outcome = this.#queue.then(() => this.#sendAll(requests));
    this.#queue = outcome.then(
      () => {},
      () => {},
    );
    const over = () => {
      this.#shown.delete(shown);
      this.#owner.changed();
    };
    void outcome.then(({ rejected }) => {
      if (rejected) over();
      return this.#owner.renew();
    }).finally(over);
    return outcome.finally(() => this.open--);
  }

  /** @param {TaskChange["requests"]} requests @returns {Promise<Outcome>} */
  async #sendAll(requests) {
    /** @type {Outcome} */
    const outcome = { tasks: [], batches: [], notUnderstood: [], rejected: null };
    for (const request of requests) {
      try {
        const { tasks, batch, not_understood: notUnderstood = [] } = await this.#send({ key: newKey(), ...request });
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

  /** @param {Request & {key: string}} request @returns {Promise<Changed>} */
  async #send(request) {
    for (;;) {
      try {
        const changed = await this.#api.change(request);
        this.#owner.here();
        return changed;
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error;
        await this.#owner.again();
      }
    }
  }
}

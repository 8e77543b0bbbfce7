// @ts-check
import { ConnectionLost, HttpError } from "../../chat/protocol.js";
import { newKey } from "./api.js";
/** @import {Api} from "./api.js" */
/** @import {Changed, Task} from "../types" */

/** A request without its key. @typedef {{method: string, path: string, body?: object}} Request */
/**
 * What a person does, as one or more requests.
 * @typedef {object} Act
 * @property {(Request & {key?: string})[]} requests
 * @property {number[]} [ids] the tasks that it changes
 * @property {Partial<Task> | ((task: Task) => Partial<Task>)} [as] what is shown of them at once
 */
/** How it ended. @typedef {{tasks: Task[], batches: string[], notUnderstood: string[], refused: HttpError | null}} Outcome */

/** What is to be changed: shown at once, sent in order, again with the same key when an answer is lost. */
export class Wishes {
  /** What is shown before the server's list tells it. @type {Set<{ids: Set<number>, as: NonNullable<Act["as"]>}>} */
  #shown = new Set();
  /** How many acts are not answered yet. */
  open = 0;
  #line = Promise.resolve();
  #api;
  #owner;

  /** @param {Api} api @param {{again: () => Promise<void>, here: () => void, changed: () => void, renew: () => Promise<void>}} owner */
  constructor(api, owner) {
    this.#api = api;
    this.#owner = owner;
  }

  /** A task as the person wants it. @param {Task} task @returns {Task} */
  applied(task) {
    for (const { ids, as } of this.#shown) if (ids.has(task.id)) task = { ...task, ...(typeof as === "function" ? as(task) : as) };
    return task;
  }

  /** Ends when the server has answered; what is shown is then the list's own, once that is read again. @param {Act} act @returns {Promise<Outcome>} */
  act({ requests, ids = [], as = {} }) {
    const shown = { ids: new Set(ids), as };
    this.#shown.add(shown);
    this.open++;
    this.#owner.changed();
    const outcome = this.#line.then(() => this.#made(requests));
    this.#line = outcome.then(
      () => {},
      () => {},
    );
    const over = () => {
      this.#shown.delete(shown);
      this.#owner.changed();
    };
    void outcome.then(({ refused }) => {
      if (refused) over();
      return this.#owner.renew();
    }).finally(over);
    return outcome.finally(() => this.open--);
  }

  /** @param {Act["requests"]} requests @returns {Promise<Outcome>} */
  async #made(requests) {
    /** @type {Outcome} */
    const outcome = { tasks: [], batches: [], notUnderstood: [], refused: null };
    for (const request of requests) {
      try {
        const { tasks, batch, not_understood: notUnderstood = [] } = await this.#sent({ key: newKey(), ...request });
        outcome.tasks.push(...tasks);
        outcome.notUnderstood.push(...notUnderstood);
        if (batch) outcome.batches.push(batch);
      } catch (error) {
        if (!(error instanceof HttpError)) throw error;
        outcome.refused = error;
        break;
      }
    }
    return outcome;
  }

  /** @param {Request & {key: string}} wish @returns {Promise<Changed>} */
  async #sent(wish) {
    for (;;) {
      try {
        const changed = await this.#api.change(wish);
        this.#owner.here();
        return changed;
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error;
        await this.#owner.again();
      }
    }
  }
}

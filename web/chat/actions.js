// @ts-check
/** @import {Api} from "./protocol.js" */
/** @import {Action, ThreadEvent} from "./types" */

/** Runs the actions of widgets one after the other, because each returns the whole widget. */
export class Actions {
  /** The keys of running and waiting actions. @type {ReadonlySet<string>} */
  running = new Set();
  /** @type {Promise<void>} */
  #last = Promise.resolve();
  #api;
  #owner;

  /** @param {Api} api @param {{changed: () => void, receive: (event: ThreadEvent) => void}} owner */
  constructor(api, owner) {
    this.#api = api;
    this.#owner = owner;
  }

  /** @param {Action} action @param {string | null} threadId @param {string} [itemId] */
  run(action, threadId, itemId) {
    const key = actionKey(action, itemId);
    this.running = new Set([...this.running, key]);
    this.#owner.changed();
    const run = this.#last.then(() => this.#send(action, threadId, itemId)).finally(() => {
      this.running = new Set([...this.running].filter((other) => other !== key));
      this.#owner.changed();
    });
    this.#last = run.catch(() => {}); // the caller handles the error
    return run;
  }

  /** @param {Action} action @param {string | null} threadId @param {string} [itemId] */
  async #send({ type, payload }, threadId, itemId) {
    const params = { thread_id: threadId, item_id: itemId, action: { type, payload } };
    for await (const event of this.#api.stream("threads.custom_action", params)) this.#owner.receive(event);
  }
}

/** Returns the key of an action. @param {Action} action @param {string} [itemId] */
export const actionKey = ({ type, payload }, itemId) => JSON.stringify([itemId, type, payload]);

// @ts-check
import { ConnectionLost, HttpError } from "../chat/protocol.js";
import { LIST } from "../texts.js";
import { undoRequest } from "./data/api.js";
/** @import {Batch} from "./types" */
/** @import {Ui} from "./ui.js" */

/** What is known here of a change: all its batches, and the fields of its tasks before. @typedef {{batches: string[], before: NonNullable<import("./data/pending.js").TaskChange["as"]>}} Made */
/** A change that is undone or redone: `about` says which. @typedef {{batches: string[], about: string, redo?: boolean}} Reverted */

/** Undoes and redoes the last changes of the user's tasks, whoever made them. */
export class UndoHistory {
  /** The changes that were made here, by their batches. @type {Map<string, Made>} */
  #made = new Map();
  /** Batches that could not be undone. @type {Set<string>} */
  #impossible = new Set();
  /** @type {Promise<unknown>} */
  #queue = Promise.resolve();
  #ui;

  /** @param {Ui} ui */
  constructor(ui) {
    this.#ui = ui;
  }

  /** Remembers a change that was made here. @param {Made} made */
  remember(made) {
    for (const batch of made.batches) this.#made.set(batch, made);
  }

  /** Undoes the newest change that is not undone, or brings back a discarded text. A change that is not sent yet is withdrawn. */
  undo() {
    const { actions } = this.#ui;
    if (actions.bringsBack) return actions.undo();
    return this.#enqueue(async () => {
      const withdrawn = this.#ui.pending.withdrawNewest();
      if (withdrawn) return actions.reportWithdrawn(withdrawn);
      await this.#revertNext(newestDone, LIST.nothingToUndo, false);
    });
  }

  /** Redoes what was undone last, unless something was changed since. */
  redo() {
    return this.#enqueue(() => this.#revertNext(newestUndone, LIST.nothingToRedo, true));
  }

  /** @param {Reverted} reverted */
  revert({ batches, about, redo = false }) {
    const { actions, pending, reader } = this.#ui;
    reader.delayRefresh(0);
    actions.leaving.clear();
    const before = this.#made.get(batches[0])?.before;
    const requests = [...batches].reverse().map(undoRequest);
    const summary = `${redo ? LIST.was.redone : LIST.was.undone}: ${about}`;
    return pending.send({ requests, summary, reverts: { about, redo }, ...(before && { as: before }) });
  }

  /** @param {(batches: Batch[], impossible: ReadonlySet<string>) => Batch | undefined} choose @param {string} nothing what is said if there is none @param {boolean} redo */
  async #revertNext(choose, nothing, redo) {
    const { actions, api, pending } = this.#ui;
    await pending.answered(); // before that, a change has no batch
    const batch = choose(await api.batches(), this.#impossible);
    if (!batch) return actions.say(nothing);
    const batches = this.#made.get(batch.batch)?.batches ?? [batch.batch];
    const { rejected } = await this.revert({ batches, about: describe(batch), redo });
    if (!rejected) return;
    for (const one of batches) this.#impossible.add(one);
    actions.showProblem(`${rejected.message} ${redo ? LIST.redoNext : LIST.undoNext}`);
  }

  /** Runs one after the other: each chooses by what the one before has done. @param {() => Promise<unknown> | void} work */
  #enqueue(work) {
    const done = this.#queue.then(work).catch((error) => this.#fail(error));
    this.#queue = done;
    return done;
  }

  /** @param {unknown} error */
  #fail(error) {
    const { actions } = this.#ui;
    if (error instanceof ConnectionLost) actions.showProblem(LIST.undoOffline);
    else if (error instanceof HttpError) actions.showError(error);
    else throw error;
  }
}

/** Returns the newest change that is not undone, which may be a redo. @param {Batch[]} batches the newest first @param {ReadonlySet<string>} impossible */
const newestDone = (batches, impossible) => batches.find(({ batch, kind, undone }) => kind !== "undo" && !undone && !impossible.has(batch));

/** Returns the newest undo that can be undone itself; none once something else was changed. @param {Batch[]} batches the newest first @param {ReadonlySet<string>} impossible */
function newestUndone(batches, impossible) {
  const since = batches.findIndex(({ kind }) => kind === "change");
  const undos = since < 0 ? batches : batches.slice(0, since);
  return undos.find(({ batch, kind, undone }) => kind === "undo" && !undone && !impossible.has(batch));
}

/** @param {Batch} batch */
function describe({ titles, count }) {
  const named = titles.map((title) => `“${title}”`).join(", ");
  return count > titles.length ? LIST.andMore(named, count - titles.length) : named;
}

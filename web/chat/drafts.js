// @ts-check
import { storage } from "./storage.js";
/** @import {Unsaved} from "../unsaved.js" */

const BEFORE = "todo.draft."; // keys of the time when drafts were in localStorage

/** What is typed, or attached: for a conversation (`draft`, `file`, `rename`), in an edited message, or as the reason in a card's field. @typedef {"draft" | "file" | "rename" | "edit-message" | "reason"} Kind */

/** @param {Kind} kind @param {string | null} threadId null: a new conversation */
const keyOf = (kind, threadId) => `${kind}/${threadId ?? "new"}`;

/** What the user has typed and not sent: drafts of messages, and texts in edits, cards and titles. */
export class Drafts {
  #unsaved;

  /** @param {Unsaved} unsaved */
  constructor(unsaved) {
    this.#unsaved = unsaved;
    for (const key of storage.keys(BEFORE)) {
      const name = key.slice(BEFORE.length);
      if (!this.get(name)) this.set(name, storage.get(key) ?? "");
      storage.set(key, null);
    }
  }

  /** @param {string | null} threadId @returns {string} */
  get(threadId) {
    return this.read("draft", threadId) ?? "";
  }

  /** @param {string | null} threadId @param {string} text */
  set(threadId, text) {
    this.write("draft", threadId, text);
  }

  /** Puts a text before the draft. @param {string | null} threadId @param {string} text */
  giveBack(threadId, text) {
    const written = this.get(threadId);
    this.set(threadId, written ? `${text}\n\n${written}` : text);
    void this.#unsaved.flush();
  }

  /** @param {Kind} kind @param {string | null} id @returns {any} undefined: there is nothing */
  read(kind, id) {
    return this.#unsaved.get(keyOf(kind, id));
  }

  /** @param {Kind} kind @param {string | null} id @param {unknown} value undefined or an empty text: deletes it */
  write(kind, id, value) {
    this.#unsaved.set(keyOf(kind, id), value);
  }

  /** Returns the ids and values of a kind, the oldest first. @param {Kind} kind @returns {[string, any][]} */
  all(kind) {
    return this.#unsaved.rows(`${kind}/`).map(({ key, value }) => [key.slice(kind.length + 1), value]);
  }

  /** Moves what was typed for a new conversation, which has an id now. @param {string} threadId */
  created(threadId) {
    for (const kind of /** @type {Kind[]} */ (["draft", "file"])) {
      this.write(kind, threadId, this.read(kind, null));
      this.write(kind, null, undefined);
    }
  }

  /** Deletes what belongs to a deleted conversation. @param {string} threadId */
  forget(threadId) {
    for (const kind of /** @type {Kind[]} */ (["draft", "file", "rename"])) this.write(kind, threadId, undefined);
  }
}

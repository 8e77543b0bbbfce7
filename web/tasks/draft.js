// @ts-check
import { storage } from "../chat/storage.js";
import { newKey } from "./data/api.js";
import { dueInGrammar } from "./language/phrases.js";
import { Preview } from "./preview.js";
/** @import {Api} from "./data/api.js" */
/** @import {Clock} from "./data/clock.js" */

const DRAFT = "todo.tasks.draft";
const UNSENT = "todo.tasks.unsent";
const ASIDE = "todo.tasks.aside";
export const MAX_TEXT_LENGTH = 500;

/** The request for a new task and the text that the user typed. @typedef {{key: string, text: string, fields: object}} NewTask */

/** The text of a new task and what the server understands of it. It survives a reload. */
export class TaskDraft {
  text = storage.get(DRAFT) ?? "";
  /** The day of a task whose text has none. @type {string | null} */
  day = null;
  /** Whether words that look like a date belong to the title. */
  literal = false;
  /** Rejected texts that the user can edit again. @type {string[]} */
  aside = stored(ASIDE);
  #clock;
  #preview;

  /** @param {Api} api @param {Clock} clock @param {() => void} changed */
  constructor(api, clock, changed) {
    this.#clock = clock;
    this.#preview = new Preview(api, "task", changed);
    this.#updatePreview();
  }

  #updatePreview() {
    this.#preview.write(this.text, this.#clock.now, !this.literal);
  }

  /** @param {string} text */
  write(text) {
    this.text = text;
    if (!text.trim()) this.literal = false;
    storage.set(DRAFT, text);
    this.#updatePreview();
  }

  /** Leaves words that look like a date in the title. */
  keepAsTitle() {
    this.literal = true;
    this.#updatePreview();
  }

  get understood() {
    return this.#preview.understood;
  }

  /** The day of a task whose text has none. */
  get defaultDay() {
    return this.literal ? null : this.day;
  }

  /** The request. It says when the text was written, because it may be sent much later. */
  get fields() {
    const { day, time } = this.#clock.now;
    return {
      text: this.text.trim(),
      written: `${day}T${time}`,
      ...(this.literal && { dates: false }),
      ...(this.defaultDay && { default_due: dueInGrammar(this.defaultDay) }),
    };
  }

  /** Tasks without a response, also from before a reload. @returns {NewTask[]} */
  get unsent() {
    return stored(UNSENT);
  }

  /** @param {NewTask} task */
  storeUnsent(task) {
    storage.set(UNSENT, JSON.stringify([...this.unsent, task]));
  }

  /** @param {NewTask} task */
  removeUnsent({ key }) {
    const others = this.unsent.filter((one) => one.key !== key);
    storage.set(UNSENT, others.length > 0 ? JSON.stringify(others) : null);
  }

  /** @param {string} text */
  setAside(text) {
    this.#storeAside([...this.aside, text]);
  }

  /** @param {number} index */
  dropAside(index) {
    this.#storeAside(this.aside.filter((_, at) => at !== index));
  }

  /** Edits a rejected text again; the current text takes its place. @param {number} index */
  resume(index) {
    const text = this.aside[index];
    const { text: now } = this;
    this.#storeAside(this.aside.flatMap((one, at) => (at !== index ? [one] : now.trim() ? [now] : [])));
    this.write(text);
  }

  /** @param {string[]} aside */
  #storeAside(aside) {
    this.aside = aside;
    storage.set(ASIDE, aside.length > 0 ? JSON.stringify(aside) : null);
  }
}

/** @param {string} key of a list @returns {any[]} */
function stored(key) {
  try {
    return JSON.parse(storage.get(key) ?? "[]");
  } catch {
    return [];
  }
}

/** @param {string} text as it was written @param {object} fields @returns {NewTask} */
export const newTask = (text, fields) => ({ key: newKey(), text, fields });

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
export const LONGEST_TITLE = 200;
export const LONGEST_TEXT = 1000;

/** What is sent of a new task, and what was written for it. @typedef {{key: string, text: string, fields: object}} NewTask */

/** The line that adds tasks: what is written there, and what the server understands of it. It is kept over a reload. */
export class Adding {
  text = storage.get(DRAFT) ?? "";
  /** The day that a task without one gets. @type {string | null} */
  day = null;
  /** Whether the words that tell a date are the title's. */
  literal = false;
  /** What was refused while something else was written, to be written again. @type {string[]} */
  aside = stored(ASIDE);
  #clock;
  #preview;

  /** @param {Api} api @param {Clock} clock @param {() => void} changed */
  constructor(api, clock, changed) {
    this.#clock = clock;
    this.#preview = new Preview(api, "task", changed);
    this.#ask();
  }

  #ask() {
    this.#preview.write(this.text, this.#clock.now, !this.literal);
  }

  /** @param {string} text */
  write(text) {
    this.text = text;
    if (!text.trim()) this.literal = false;
    storage.set(DRAFT, text);
    this.#ask();
  }

  /** The words that tell a date are the title's, and the task has none. */
  keepWords() {
    this.literal = true;
    this.#ask();
  }

  get understood() {
    return this.#preview.understood;
  }

  /** The day of a task whose words tell none. */
  get defaultDay() {
    return this.literal ? null : this.day;
  }

  /** What is sent: the text, and when it was written, for it may be sent much later. */
  get fields() {
    const { day, time } = this.#clock.now;
    return {
      text: this.text.trim(),
      written: `${day}T${time}`,
      ...(this.literal && { dates: false }),
      ...(this.defaultDay && { default_due: dueInGrammar(this.defaultDay) }),
    };
  }

  /** The tasks that no answer has come for, from before the page was loaded, too. @returns {NewTask[]} */
  get unsent() {
    return stored(UNSENT);
  }

  /** @param {NewTask} task */
  keep(task) {
    storage.set(UNSENT, JSON.stringify([...this.unsent, task]));
  }

  /** @param {NewTask} task */
  forget({ key }) {
    const others = this.unsent.filter((one) => one.key !== key);
    storage.set(UNSENT, others.length > 0 ? JSON.stringify(others) : null);
  }

  /** @param {string} text */
  setAside(text) {
    this.#keepAside([...this.aside, text]);
  }

  /** @param {number} index */
  dropAside(index) {
    this.#keepAside(this.aside.filter((_, at) => at !== index));
  }

  /** Write it again; what is written now is set aside in its place. @param {number} index */
  takeUp(index) {
    const text = this.aside[index];
    const { text: now } = this;
    this.#keepAside(this.aside.flatMap((one, at) => (at !== index ? [one] : now.trim() ? [now] : [])));
    this.write(text);
  }

  /** @param {string[]} aside */
  #keepAside(aside) {
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

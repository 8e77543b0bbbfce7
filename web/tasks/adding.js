// @ts-check
import { storage } from "../chat/storage.js";
import { newKey } from "./data/api.js";
import { sentenceOf } from "./language/sentence.js";
import { dueInGrammar } from "./language/phrases.js";
/** @import {Clock} from "./data/clock.js" */
/** @import {Sentence} from "./language/sentence.js" */

const DRAFT = "todo.tasks.draft";
const UNSENT = "todo.tasks.unsent";
const ASIDE = "todo.tasks.aside";
export const LONGEST_TITLE = 200;

/** What is sent of a new task, and what was written for it. @typedef {{key: string, text: string, fields: {title: string}}} NewTask */

/** The line that adds tasks: what is written there, and what is understood of it. It is kept over a reload. */
export class Adding {
  text = storage.get(DRAFT) ?? "";
  /** The day that a task without one gets. @type {string | null} */
  day = null;
  /** Whether the words that tell a date are the title's. */
  literal = false;
  /** What was refused while something else was written, to be written again. @type {string[]} */
  aside = stored(ASIDE);
  #clock;

  /** @param {Clock} clock */
  constructor(clock) {
    this.#clock = clock;
  }

  /** @param {string} text */
  write(text) {
    this.text = text;
    if (!text.trim()) this.literal = false;
    storage.set(DRAFT, text);
  }

  /** @returns {Sentence} */
  get understood() {
    const sentence = sentenceOf(this.text, this.#clock.now);
    if (!this.literal || !sentence.when) return sentence;
    return { ...sentence, title: this.text.trim(), when: null, said: "", labels: [], priority: null };
  }

  /** What `add_task` takes. */
  get fields() {
    const { title, when, labels, priority } = this.understood;
    const day = when?.day ?? this.day;
    return {
      title,
      ...(day && { due: dueInGrammar(day, when?.time) }),
      ...(when?.repeat && { repeat: when.repeat }),
      ...(labels.length > 0 && { labels }),
      ...(priority && { priority }),
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

/** @param {string} text as it was written @param {{title: string}} fields @returns {NewTask} */
export const newTask = (text, fields) => ({ key: newKey(), text, fields });

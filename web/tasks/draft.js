// @ts-check
import { LIST } from "../texts.js";
import { MAX_TITLE_LENGTH, NO_TITLE, TITLE_TOO_LONG } from "./fields.js";
import { addRequest } from "./data/api.js";
import { storage, visit } from "../chat/storage.js";
import { dueInGrammar, isBlank, lengthOf } from "../words.js";
/** @import {Unsaved} from "../unsaved.js" */
/** @import {Api} from "./data/api.js" */
/** @import {Clock} from "./data/reader.js" */
/** @import {Moment, Task, TaskPreview} from "./types" */

export const DRAFT = "draft-task";
export const ASIDE = "aside";
const MAX_TEXT_LENGTH = 500;

/** Returns why a text cannot be added. @param {string} text @param {string} [title] what is left of it as the title, if that is known */
export function problemOfDraft(text, title) {
  if (title !== undefined && isBlank(title)) return NO_TITLE;
  return lengthOf(text) > MAX_TEXT_LENGTH || lengthOf(title ?? "") > MAX_TITLE_LENGTH ? TITLE_TOO_LONG : "";
}

/** The text of a new task and what the server understands of it. It is stored. */
export class TaskDraft {
  text = "";
  /** The day of a task whose text has none. @type {string | null} */
  day = null;
  /** Whether words that look like a date belong to the title. */
  literal = false;
  /** Rejected texts that the user can edit again. @type {string[]} */
  aside = [];
  /** What another app has shared: it is not stored before the user types, adds or edits it. */
  #shared = "";
  #unsaved;
  #clock;
  #preview;

  /** @param {Api} api @param {Unsaved} unsaved @param {Clock} clock @param {() => void} changed */
  constructor(api, unsaved, clock, changed) {
    this.#unsaved = unsaved;
    this.#clock = clock;
    this.#preview = new Preview(api, "task", changed);
    this.read();
  }

  /** Reads what is stored. */
  read() {
    const typed = this.#unsaved.get(DRAFT);
    const aside = this.#unsaved.get(ASIDE) ?? [];
    const { text = this.#shared, literal = false } = typed ?? {};
    this.aside = typed && this.#shared ? [...aside, this.#shared] : aside;
    if (text === this.text && literal === this.literal) return;
    this.text = text;
    this.literal = literal;
    this.#updatePreview();
  }

  /** Shows a text in the field, or beside what is typed in it. @param {string} text */
  share(text) {
    this.#shared = text.slice(0, MAX_TEXT_LENGTH);
    this.read();
  }

  #updatePreview() {
    this.#preview.write(this.text, this.#clock.now, !this.literal);
  }

  #store() {
    this.#unsaved.set(DRAFT, this.text ? { text: this.text, literal: this.literal } : null);
    this.#updatePreview();
  }

  /** @param {string} text */
  write(text) {
    if (this.text === this.#shared) this.#shared = "";
    this.text = text;
    if (!text.trim()) this.literal = false;
    this.#store();
  }

  /** Leaves words that look like a date in the title. */
  keepAsTitle() {
    this.literal = true;
    this.#store();
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

  /** The task as it is shown until it is saved. @returns {Task} */
  get task() {
    const { title, due = null, time = null, repeat = null, remind = null, priority = null, labels = [] } = this.#preview.current ?? {};
    return {
      ...{ id: 0, description: "", status: "pending", completed: null, deleted: null },
      ...{ title: title ?? this.text.trim(), due: due ?? this.defaultDay, time, repeat, remind, priority, labels },
    };
  }

  /** Shows a rejected text again, beside what was typed meanwhile. @param {string} text */
  giveBack(text) {
    if (this.text) this.#storeAside([...this.aside, text]);
    else this.write(text);
  }

  /** @param {number} index */
  dropAside(index) {
    this.#storeAside(this.aside.filter((_, at) => at !== index));
  }

  /** Edits a rejected text again; the current text takes its place. @param {number} index */
  resume(index) {
    const text = this.aside[index];
    const { text: now } = this;
    this.#shared = "";
    this.#storeAside(this.aside.flatMap((one, at) => (at !== index ? [one] : now.trim() ? [now] : [])));
    this.write(text);
  }

  /** @param {string[]} aside */
  #storeAside(aside) {
    this.aside = aside;
    if (this.text !== this.#shared && !aside.includes(this.#shared)) this.#shared = "";
    const stored = aside.filter((text) => text !== this.#shared);
    this.#unsaved.set(ASIDE, stored.length > 0 ? stored : null);
  }
}

const PAUSE = 120; // ms after the last letter

/** What the server understands of a text while it is typed. Responses to older texts are dropped. */
export class Preview {
  /** The last response. @type {TaskPreview | null} */
  understood = null;
  #text = "";
  /** The text that `understood` is about. */
  #read = "";
  #dates = true;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #api;
  #mode;
  #changed;

  /** @param {Api} api @param {"task" | "date"} mode @param {() => void} changed */
  constructor(api, mode, changed) {
    this.#api = api;
    this.#mode = mode;
    this.#changed = changed;
  }

  /** What is understood of the text as it is now; null if that is not known yet. */
  get current() {
    return this.#read === this.#text ? this.understood : null;
  }

  /** Asks the server after a pause. @param {string} text @param {Moment} now @param {boolean} [dates] whether words of time are a date */
  write(text, now, dates = true) {
    clearTimeout(this.#timer);
    this.#text = text;
    this.#dates = dates;
    if (!text.trim()) this.understood = null;
    else this.#timer = setTimeout(() => void this.read(text, now, dates), PAUSE);
  }

  /** Asks the server at once; null without a response. @param {string} text @param {Moment} now */
  async read(text, now, dates = true) {
    const understood = await this.#api.preview(text, this.#mode, now, dates).catch(() => null);
    if (text === this.#text && dates === this.#dates) {
      this.understood = understood;
      this.#read = text;
      this.#changed();
    }
    return understood;
  }
}

/** Keys of version 0.2 and before, in which texts were stored for all users and tabs of a browser. */
const KEYS = { draft: "todo.tasks.draft", aside: "todo.tasks.aside", unsent: "todo.tasks.unsent", edit: "todo.tasks.editing" };

/** Moves what an earlier version of the page has stored into `unsaved`, once. @param {Unsaved} unsaved */
export function moveEarlierTexts(unsaved) {
  const text = storage.get(KEYS.draft);
  if (text && !unsaved.get(DRAFT)) unsaved.set(DRAFT, { text, literal: false });
  const aside = parsed(storage.get(KEYS.aside));
  if (aside) unsaved.set(ASIDE, [...(unsaved.get(ASIDE) ?? []), ...aside]);
  /** @type {{key: string, text: string, fields: object}[]} */
  const unsent = parsed(storage.get(KEYS.unsent)) ?? [];
  unsent.forEach((task, index) => moveUnsentTask(unsaved, task, Date.now() + index));
  const edit = parsed(visit.get(KEYS.edit));
  if (edit?.task) unsaved.set(`edit/${edit.task.id}`, { before: {}, view: "today", ...edit });
  for (const key of [KEYS.draft, KEYS.aside, KEYS.unsent]) storage.set(key, null);
  visit.set(KEYS.edit, null);
}

/** @param {Unsaved} unsaved @param {{key: string, text: string, fields: object}} task @param {number} order */
function moveUnsentTask(unsaved, { key, text, fields }, order) {
  const added = { title: text.trim(), description: "", status: "pending", due: null, time: null, repeat: null, remind: null, priority: null, labels: [] };
  const requests = [{ ...addRequest(fields), key }];
  unsaved.set(`change/${key}`, { key, order, requests, text, summary: LIST.was.added, added: { ...added, completed: null, deleted: null, id: -order } }, null);
}

/** @param {string | null} text @returns {any} null if there is none */
function parsed(text) {
  try {
    return JSON.parse(text ?? "null");
  } catch {
    return null;
  }
}

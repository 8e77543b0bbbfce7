// @ts-check
import { visit } from "../chat/storage.js";
import { LONGEST_TITLE } from "./draft.js";
import { LIST } from "../texts.js";
import { dueInGrammar, repeatWords } from "./language/phrases.js";
/** @import {Fields, Task, TaskPreview} from "./types" */

const STORAGE_KEY = "todo.tasks.editing";

/** The values of the edited task's fields. They survive scrolling and a reload. */
export class Editing {
  /** Why the task cannot be saved. */
  problem = "";
  /** The rendered files that agents wrote for the task. @type {unknown} */
  files;
  /** @type {Record<string, string>} */
  written;
  #before;
  /** @type {{text: string, understood: TaskPreview | null} | null} */
  #repeat = null;

  /** @param {Task} task before editing; only differences are saved */
  constructor(task) {
    this.task = task;
    this.written = {
      title: task.title,
      description: task.description,
      date: task.due ?? "",
      time: task.time ?? "",
      priority: task.priority ?? "none",
      labels: task.labels.join(", "),
      repeat: task.repeat ? repeatWords(task.repeat) : "",
    };
    this.#before = { ...this.written };
  }

  /** Restores what was edited when the page was closed. */
  static restored() {
    try {
      const { task, written } = JSON.parse(visit.get(STORAGE_KEY) ?? "");
      return Object.assign(new Editing(task), { written });
    } catch {
      return null;
    }
  }

  static forget() {
    visit.set(STORAGE_KEY, null);
  }

  /** @param {string} name @param {string} value */
  write(name, value) {
    this.written[name] = value;
    this.store();
  }

  store() {
    visit.set(STORAGE_KEY, this.changed ? JSON.stringify({ task: this.task, written: this.written }) : null);
  }

  get changed() {
    return Object.keys(this.written).some((name) => this.differs(name));
  }

  /** The repeat in words, if the server has not read it yet. */
  get unreadRepeat() {
    const text = this.written.repeat.trim();
    return this.differs("repeat") && this.#repeat?.text !== text ? text : "";
  }

  /** @param {string} text @param {TaskPreview | null} understood */
  readRepeat(text, understood) {
    this.#repeat = { text, understood };
  }

  /** @param {string} name */
  differs(name) {
    return this.written[name].trim() !== this.#before[name].trim();
  }

  /** Returns the fields to send and how the task is shown until then; null if it cannot be saved for `problem`. */
  changes() {
    const { written } = this;
    const title = written.title.replace(/\s+/g, " ").trim();
    const understood = written.repeat.trim() && this.differs("repeat") ? this.#repeat?.understood : null;
    const date = written.date || (understood?.repeat && understood.due ? understood.due : "");
    if (understood?.repeat && understood.time && !written.time) written.time = understood.time;
    this.problem = this.#problem(title, understood?.repeat ?? null, date);
    if (this.problem) return null;
    /** @type {Fields} */
    const fields = {};
    /** @type {Partial<Task>} */
    const as = {};
    if (this.differs("title")) as.title = fields.title = title;
    if (this.differs("description")) as.description = fields.description = written.description.trim();
    if (this.differs("priority")) fields.priority = /** @type {NonNullable<Fields["priority"]>} */ (written.priority);
    if (fields.priority) as.priority = fields.priority === "none" ? null : fields.priority;
    if (this.differs("labels")) as.labels = fields.labels = labelsOf(written.labels);
    if (date !== (this.task.due ?? "") || this.differs("time")) Object.assign(fields, { due: this.#due(date) });
    if (fields.due) Object.assign(as, { due: date || null, time: written.time || null });
    if (this.differs("repeat")) as.repeat = fields.repeat = understood?.repeat ?? "none";
    return { fields, as };
  }

  /** @param {string} date */
  #due(date) {
    const { time } = this.written;
    return dueInGrammar(date || null, time, this.task.time !== null);
  }

  /** @param {string} title @param {string | null} repeat @param {string} date */
  #problem(title, repeat, date) {
    const { written } = this;
    if (!title) return LIST.titleNeeded;
    if (title.length > LONGEST_TITLE) return LIST.tooLong;
    if (written.time && !date) return LIST.timeNeedsDate;
    if (!written.repeat.trim()) return "";
    if (this.differs("repeat") && !repeat) return LIST.repeatUnknown;
    return date ? "" : LIST.repeatNeedsDate;
  }
}

/** @param {string} text */
const labelsOf = (text) => [...new Set(text.split(/[,#\n]/).map((label) => label.trim()).filter(Boolean))];

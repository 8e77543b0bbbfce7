// @ts-check
import { visit } from "../chat/storage.js";
import { LONGEST_TITLE } from "./adding.js";
import { LIST } from "../texts.js";
import { dueInGrammar, repeatWords } from "./language/phrases.js";
/** @import {Fields, Task, TaskPreview} from "./types" */

const KEPT = "todo.tasks.editing";

/** What is written in the fields of the task that is open: kept as its row may be scrolled away, and over a reload. */
export class Editing {
  /** Why it cannot be saved. */
  problem = "";
  /** The view of those that agents wrote for it. @type {unknown} */
  files;
  /** @type {Record<string, string>} */
  written;
  #before;
  /** @type {{text: string, understood: TaskPreview | null} | null} */
  #repeat = null;

  /** @param {Task} task as it was when it was opened: only what differs from it is saved */
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

  /** What was being edited when the page was left, if it can be read. */
  static restored() {
    try {
      const { task, written } = JSON.parse(visit.get(KEPT) ?? "");
      return Object.assign(new Editing(task), { written });
    } catch {
      return null;
    }
  }

  static forget() {
    visit.set(KEPT, null);
  }

  /** @param {string} name @param {string} value */
  write(name, value) {
    this.written[name] = value;
    this.keep();
  }

  keep() {
    visit.set(KEPT, this.changed ? JSON.stringify({ task: this.task, written: this.written }) : null);
  }

  /** Whether anything was changed. */
  get changed() {
    return Object.keys(this.written).some((name) => this.differs(name));
  }

  /** The repeat in words, if the server was not asked yet what it means. */
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

  /** What is to be sent, and how it is shown meanwhile; null: it cannot be saved, and `problem` says why. */
  changes() {
    const { written } = this;
    const title = written.title.replace(/\s+/g, " ").trim();
    const said = written.repeat.trim() && this.differs("repeat") ? this.#repeat?.understood : null;
    const date = written.date || (said?.repeat && said.due ? said.due : "");
    if (said?.repeat && said.time && !written.time) written.time = said.time;
    this.problem = this.#problem(title, said?.repeat ?? null, date);
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
    if (this.differs("repeat")) as.repeat = fields.repeat = said?.repeat ?? "none";
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

// @ts-check
import { HttpError } from "../chat/protocol.js";
import { Acts } from "./acts.js";
import { Adding, LONGEST_TEXT, LONGEST_TITLE, newTask } from "./adding.js";
import { Reader } from "./data/reader.js";
import { Editing } from "./editing.js";
import { Preview } from "./preview.js";
import { belongs, sectionsOf } from "./sections.js";
import { Selection } from "./selection.js";
import { LIST } from "../texts.js";
import { Window } from "./window.js";
/** @import {Api} from "./data/api.js" */
/** @import {TodoTasks} from "./element.js" */
/** @import {Filter, Section, Task, View, When} from "./types" */

const SEARCH_PAUSE = 200; // ms after the last letter
const MARKED = 2500; // ms
/** @type {View[]} */
const WHERE = ["deleted", "today", "upcoming"];

/** What a person sees of their tasks, where they are in it, and what they are about to do. */
export class Ui {
  /** @type {Section[]} */
  sections = [];
  /** All tasks as they are shown. @type {Task[]} */
  tasks = [];
  filtersOpen = false;
  searched = "";
  /** The task that the keyboard is at. @type {number | null} */
  current = null;
  /** The task whose row can be reached by Tab. @type {number | null} */
  tabStop = null;
  /** The task that was asked for from outside. @type {number | null} */
  marked = null;
  /** @type {Editing | null} */
  editing = null;
  /** The tasks whose date is being asked for. @type {{tasks: Task[], text: string, day: string, preview: Preview} | null} */
  moving = null;
  selection = new Selection(() => this.#tellSelection());
  window = new Window();
  acts = new Acts(this);
  #api;
  #element;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #search;

  /** @param {TodoTasks} element @param {Api} api */
  constructor(element, api) {
    this.#element = element;
    this.#api = api;
    this.reader = new Reader(api, {
      seen: () => element.seen,
      range: () => this.window.seen,
      changed: this.changed,
      renewed: () => element.emit("todo-changed"),
      unauthorized: () => element.emit("todo-unauthorized"),
    });
    this.adding = new Adding(api, this.clock, this.changed);
  }

  /** Draw what has changed. */
  changed = () => this.#element.changed();
  scrolled = () => this.#element.scrolled();
  /** Let a screen reader say it. @param {string} text */
  announce = (text) => this.#element.announce(text);

  /** Whether the notice is being read. */
  get reading() {
    return this.#element.reading;
  }

  /** Whether an agent can do tasks. */
  get agents() {
    return this.#element.options.agents ?? false;
  }

  /** Keep what was written of a task, and let an agent do it. */
  async delegate() {
    const id = this.editing?.task.id;
    await this.endEditing(true);
    if (id !== undefined && !this.editing) this.#element.emit("todo-delegate", { id });
  }

  get clock() {
    return this.reader.clock;
  }

  get today() {
    return this.clock.now.day;
  }

  get pages() {
    return this.reader.pages;
  }

  get wishes() {
    return this.reader.wishes;
  }

  get view() {
    return this.pages.view;
  }

  /** @param {number | null} id */
  task(id) {
    return this.tasks.find((task) => task.id === id);
  }

  begin() {
    for (const task of this.adding.unsent) void this.acts.add(task);
    this.editing = Editing.restored();
    void this.open("today").then(() => this.editing && this.show(this.editing.task.id));
  }

  close() {
    this.reader.live.close();
    this.acts.close();
    clearTimeout(this.#search);
  }

  /** Arrange the tasks under their headings. */
  arrange() {
    const { view, filtered, current, hasMore } = this.pages;
    const { today } = this;
    const wanted = this.pages.tasks.map((task) => this.wishes.applied(task)).filter((task) => belongs(view, task, today));
    this.sections = sectionsOf(view, wanted, this.clock, current && !filtered && !hasMore);
    this.tasks = this.sections.flatMap(({ tasks }) => tasks);
    this.selection.keep(new Set(this.tasks.map(({ id }) => id)));
  }

  /** Choose the row that can be reached by Tab: the one that the keyboard was at, or the first that is seen. */
  chooseTabStop() {
    const drawn = this.window.drawn.flatMap(({ section, first, end }) => section.tasks.slice(first, end));
    const at = drawn.find(({ id }) => id === this.current) ?? this.tasks[this.window.seen[0]] ?? drawn[0];
    this.tabStop = at?.id ?? null;
  }

  /** @param {View} view @param {Partial<Filter>} [filter] */
  async open(view, filter = {}) {
    if (view !== this.view) {
      this.selection.end();
      this.#element.toTop();
    }
    this.adding.day = view === "today" ? this.today : null;
    await this.reader.open(view, filter);
  }

  /** @param {Partial<Filter>} filter */
  async narrow(filter) {
    await this.open(this.view, filter);
    if (this.pages.filtered) this.announce(LIST.found(this.pages.total));
  }

  /** @param {string} text */
  search(text) {
    this.searched = text;
    clearTimeout(this.#search);
    this.#search = setTimeout(() => void this.narrow({ query: text.trim() }), SEARCH_PAUSE);
  }

  toggleFilters() {
    const { label, priority } = this.pages.filter;
    this.filtersOpen = !(this.filtersOpen || label || priority);
    if (label || priority) void this.narrow({ label: "", priority: "" });
    this.changed();
  }

  /** Show a task, in whichever view it is. @param {number} id */
  async show(id) {
    await this.#seek(id);
    if (!this.task(id)) return;
    this.current = this.marked = id;
    this.#element.reveal(id);
    setTimeout(() => {
      if (this.marked === id) this.marked = null;
      this.changed();
    }, MARKED);
  }

  /** Open the view that it is in; where it is not on its first page, those with such a title. @param {number} id */
  async #seek(id) {
    const failed = (/** @type {unknown} */ error) => (error instanceof HttpError ? this.acts.refuse(error) : this.reader.failed(error));
    const found = await this.reader.task(id).catch(failed);
    if (!found || (this.task(id)?.status === found.status && belongs(this.view, found, this.today))) return;
    const view = found.status === "completed" ? "done" : WHERE.find((view) => belongs(view, found, this.today)) ?? "all";
    for (const query of ["", found.title]) {
      this.searched = query;
      await this.open(view, { query, label: "", priority: "" });
      this.arrange();
      if (this.task(id)) return;
    }
  }

  /** @param {string} text */
  write(text) {
    this.adding.write(text);
    this.changed();
  }

  /** Write again what was not added. @param {number} index */
  takeUp(index) {
    this.adding.takeUp(index);
    this.changed();
    this.#element.focusAdding();
  }

  /** Write a task for this day. @param {string} day */
  addOn(day) {
    this.adding.day = day;
    this.changed();
    this.#element.focusAdding();
  }

  /** Add what is written. */
  async add() {
    const { fields, text, understood } = this.adding;
    if (!text.trim() || text.length > LONGEST_TEXT || (understood && understood.title.length > LONGEST_TITLE)) return;
    const task = newTask(text, fields);
    this.adding.write("");
    this.adding.keep(task);
    this.#element.draw(); // what is typed next is another task
    await this.acts.add(task);
  }

  /** A click on its title: it is edited, or selected. @param {Task} task @param {MouseEvent} event */
  opened(task, { shiftKey, ctrlKey, metaKey }) {
    if (this.selection.active || shiftKey || ctrlKey || metaKey) this.pick(task, shiftKey);
    else this.edit(task);
  }

  /** @param {Task} task */
  edit(task) {
    if (task.status !== "deleted") void this.#open(new Editing(task));
  }

  /** What is written for another task is saved first; if that cannot be, it says why and stays open. @param {Editing} editing */
  async #open(editing) {
    const { id } = editing.task;
    if (this.editing?.unreadRepeat) await this.#readRepeat(this.editing);
    void this.endEditing(true);
    if (this.editing) return void this.show(this.editing.task.id);
    this.editing = editing;
    editing.keep();
    this.current = id;
    this.#element.focusOn(id, "title");
    if (!this.task(id)) void this.show(id);
    if (this.agents) void this.#lookForFiles(this.editing).catch(() => {}); // the task can be edited without
  }

  /** What agents wrote for it. @param {Editing} editing */
  async #lookForFiles(editing) {
    const { files } = await this.#api.files(editing.task.id);
    if (files.length === 0) return;
    const { filesView } = await import("../files.js");
    const written = files.map(({ chat_id: chat, path, size }) => ({ chat, path: path.split("/").map(encodeURIComponent).join("/"), name: path, size }));
    editing.files = filesView(written);
    this.changed();
  }

  /** End editing: keep what was written, or leave the task as it was. @param {boolean} keep */
  async endEditing(keep) {
    const { editing } = this;
    if (keep && editing?.unreadRepeat) await this.#readRepeat(editing);
    if (editing !== this.editing) return; // it was ended meanwhile
    const changes = keep ? editing?.changes() : null;
    if (!editing || (keep && !changes)) return this.changed(); // it says what is missing
    this.editing = null;
    Editing.forget();
    this.#element.focusOn(editing.task.id, "open");
    if (!keep && editing.changed) this.acts.offer(LIST.was.discarded(editing.task.title), { text: LIST.undo, act: () => this.#open(editing) });
    if (!changes || Object.keys(changes.fields).length === 0) return;
    const problem = await this.acts.save(editing.task, changes.fields, changes.as);
    if (!problem) return;
    editing.problem = problem;
    if (this.editing) return this.acts.offer(problem, { text: LIST.editAgain, act: () => this.#open(editing) }, true);
    void this.#open(editing);
    this.acts.dismiss();
  }

  /** Ask what its repeat in words means. @param {Editing} editing */
  async #readRepeat(editing) {
    const text = editing.unreadRepeat;
    editing.readRepeat(text, await new Preview(this.#api, "date", this.changed).read(text, this.clock.now));
  }

  /** Ask for a date. @param {Task[]} tasks */
  ask(tasks) {
    const open = tasks.filter(({ status }) => status === "pending");
    if (open.length === 0) return;
    this.moving = { tasks: open, text: "", day: "", preview: new Preview(this.#api, "date", this.changed) };
    this.#element.draw();
  }

  /** Move the tasks to the date that is written. */
  async answerInWords() {
    const { moving } = this;
    const understood = await moving?.preview.read(moving.text, this.clock.now);
    if (moving && moving === this.moving && understood?.due) this.answer({ day: understood.due, time: understood.time });
  }

  /** The date is asked for no more. @param {Pick<When, "day" | "time"> | null} [when] what was chosen; null: no date */
  answer(when) {
    const { moving } = this;
    this.moving = null;
    this.#element.closeDialog();
    this.#element.draw();
    if (!moving || when === undefined) return;
    this.selection.end();
    void this.acts.move(moving.tasks, when);
  }

  /** @param {Task[]} tasks */
  remove(tasks) {
    if (tasks.some(({ id }) => id === this.editing?.task.id)) {
      this.editing = null;
      Editing.forget();
    }
    void this.acts.remove(tasks);
  }

  /** The tasks that are meant: the selected ones if this one is, else this one alone. @param {Task} task */
  meant(task) {
    return this.selection.ids.has(task.id) ? this.selected : [task];
  }

  get selected() {
    return this.tasks.filter(({ id }) => this.selection.ids.has(id));
  }

  /** The selected tasks, which are selected no more. */
  taken() {
    const { selected } = this;
    this.selection.end();
    return selected;
  }

  /** @param {Task} task @param {boolean} range from the one that was selected before */
  pick(task, range) {
    this.current = task.id;
    this.selection.pick(task.id, range ? this.tasks.map(({ id }) => id) : undefined);
  }

  #tellSelection() {
    this.#element.emit("todo-selection", { tasks: this.selected.map(({ id, title }) => ({ id, title })) });
    this.changed();
  }
}

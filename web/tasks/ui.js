// @ts-check
import { HttpError } from "../chat/protocol.js";
import { TaskActions } from "./actions.js";
import { TaskDraft, MAX_TEXT_LENGTH, newTask } from "./draft.js";
import { Reader } from "./data/reader.js";
import { Editing } from "./editing.js";
import { MAX_TITLE_LENGTH } from "./fields.js";
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

/** The state of the list: what is shown, focused, selected and edited. */
export class Ui {
  /** @type {Section[]} */
  sections = [];
  /** The shown tasks, in order. @type {Task[]} */
  tasks = [];
  filtersOpen = false;
  searched = "";
  /** The task with the keyboard focus. @type {number | null} */
  current = null;
  /** The task whose row is reached by Tab. @type {number | null} */
  tabStop = null;
  /** The task that `show` highlights. @type {number | null} */
  marked = null;
  /** @type {Editing | null} */
  editing = null;
  /** The tasks for which the dialog asks for a date. @type {{tasks: Task[], text: string, day: string, preview: Preview} | null} */
  moving = null;
  selection = new Selection(() => this.#announceSelection());
  window = new Window();
  actions = new TaskActions(this);
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
    this.draft = new TaskDraft(api, this.clock, this.changed);
  }

  /** Schedules a drawing. */
  changed = () => this.#element.changed();
  scrolled = () => this.#element.scrolled();
  /** Announces a text to screen readers. @param {string} text */
  announce = (text) => this.#element.announce(text);

  /** Whether the notice has the focus or the pointer. */
  get reading() {
    return this.#element.reading;
  }

  /** Whether an agent can do tasks. */
  get agents() {
    return this.#element.options.agents ?? false;
  }

  /** Saves the edited task and lets an agent work on it. */
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

  get pending() {
    return this.reader.pending;
  }

  get view() {
    return this.pages.view;
  }

  /** @param {number | null} id */
  task(id) {
    return this.tasks.find((task) => task.id === id);
  }

  begin() {
    for (const task of this.draft.unsent) void this.actions.add(task);
    this.editing = Editing.restored();
    void this.open("today").then(() => this.editing && this.show(this.editing.task.id));
  }

  close() {
    this.reader.poller.close();
    this.actions.close();
    clearTimeout(this.#search);
  }

  /** Sorts the tasks into sections. */
  arrange() {
    const { view, filtered, current, hasMore } = this.pages;
    const { today } = this;
    const wanted = this.pages.tasks.map((task) => this.pending.apply(task)).filter((task) => belongs(view, task, today));
    this.sections = sectionsOf(view, wanted, this.clock, current && !filtered && !hasMore);
    this.tasks = this.sections.flatMap(({ tasks }) => tasks);
    this.selection.keep(new Set(this.tasks.map(({ id }) => id)));
  }

  /** Chooses the row that is reached by Tab: the focused one, or the first visible one. */
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
    this.draft.day = view === "today" ? this.today : null;
    await this.reader.open(view, filter);
  }

  /** @param {Partial<Filter>} filter */
  async setFilter(filter) {
    await this.open(this.view, filter);
    if (this.pages.filtered) this.announce(LIST.found(this.pages.total));
  }

  /** @param {string} text */
  search(text) {
    this.searched = text;
    clearTimeout(this.#search);
    this.#search = setTimeout(() => void this.setFilter({ query: text.trim() }), SEARCH_PAUSE);
  }

  toggleFilters() {
    const { label, priority } = this.pages.filter;
    this.filtersOpen = !(this.filtersOpen || label || priority);
    if (label || priority) void this.setFilter({ label: "", priority: "" });
    this.changed();
  }

  /** Shows a task in the view that contains it. @param {number} id */
  async show(id) {
    await this.#openViewOf(id);
    if (!this.task(id)) return;
    this.current = this.marked = id;
    this.#element.reveal(id);
    setTimeout(() => {
      if (this.marked === id) this.marked = null;
      this.changed();
    }, MARKED);
  }

  /** Opens the view with the task; if its first page lacks the task, filters by its title. @param {number} id */
  async #openViewOf(id) {
    const failed = (/** @type {unknown} */ error) => (error instanceof HttpError ? this.actions.showError(error) : this.reader.failed(error));
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
    this.draft.write(text);
    this.changed();
  }

  /** Edits a rejected text again. @param {number} index */
  resumeDraft(index) {
    this.draft.resume(index);
    this.changed();
    this.#element.focusAdding();
  }

  /** Begins a task for this day. @param {string} day */
  addOn(day) {
    this.draft.day = day;
    this.changed();
    this.#element.focusAdding();
  }

  /** Adds the task of the draft. */
  async add() {
    const { fields, text, understood } = this.draft;
    if (!text.trim() || text.length > MAX_TEXT_LENGTH || (understood && understood.title.length > MAX_TITLE_LENGTH)) return;
    const task = newTask(text, fields);
    this.draft.write("");
    this.draft.storeUnsent(task);
    this.#element.draw(); // the next key belongs to another task
    await this.actions.add(task);
  }

  /** Handles a click on a title: edits or selects the task. @param {Task} task @param {MouseEvent} event */
  opened(task, { shiftKey, ctrlKey, metaKey }) {
    if (this.selection.active || shiftKey || ctrlKey || metaKey) this.pick(task, shiftKey);
    else this.edit(task);
  }

  /** @param {Task} task */
  edit(task) {
    if (task.status !== "deleted") void this.#open(new Editing(task));
  }

  /** Saves the task that is edited first; if that fails, it stays open and says why. @param {Editing} editing */
  async #open(editing) {
    const { id } = editing.task;
    if (this.editing?.unreadRepeat) await this.#readRepeat(this.editing);
    void this.endEditing(true);
    if (this.editing) return void this.show(this.editing.task.id);
    this.editing = editing;
    editing.store();
    this.current = id;
    this.#element.focusOn(id, "title");
    if (!this.task(id)) void this.show(id);
    if (this.agents) void this.#lookForFiles(this.editing).catch(() => {}); // the files are optional
  }

  /** Loads the files that agents wrote for the task. @param {Editing} editing */
  async #lookForFiles(editing) {
    const { files } = await this.#api.files(editing.task.id);
    if (files.length === 0) return;
    const { filesView } = await import("../files.js");
    const written = files.map(({ chat_id: chat, path, size }) => ({ chat, path: path.split("/").map(encodeURIComponent).join("/"), name: path, size }));
    editing.files = filesView(written);
    this.changed();
  }

  /** Ends editing and saves or discards the changes. @param {boolean} keep */
  async endEditing(keep) {
    const { editing } = this;
    if (keep && editing?.unreadRepeat) await this.#readRepeat(editing);
    if (editing !== this.editing) return; // it has ended already
    const changes = keep ? editing?.changes() : null;
    if (!editing || (keep && !changes)) return this.changed(); // it shows the problem
    this.editing = null;
    Editing.forget();
    this.#element.focusOn(editing.task.id, "open");
    if (!keep && editing.changed) this.actions.offer(LIST.was.discarded(editing.task.title), { text: LIST.undo, act: () => this.#open(editing) });
    if (!changes || Object.keys(changes.fields).length === 0) return;
    const problem = await this.actions.save(editing.task, changes.fields, changes.as);
    if (!problem) return;
    editing.problem = problem;
    if (this.editing) return this.actions.offer(problem, { text: LIST.editAgain, act: () => this.#open(editing) }, true);
    void this.#open(editing);
    this.actions.dismiss();
  }

  /** Lets the server read the repeat. @param {Editing} editing */
  async #readRepeat(editing) {
    const text = editing.unreadRepeat;
    editing.readRepeat(text, await new Preview(this.#api, "date", this.changed).read(text, this.clock.now));
  }

  /** Opens the dialog that asks for a date. @param {Task[]} tasks */
  startMove(tasks) {
    const open = tasks.filter(({ status }) => status === "pending");
    if (open.length === 0) return;
    this.moving = { tasks: open, text: "", day: "", preview: new Preview(this.#api, "date", this.changed) };
    this.#element.draw();
  }

  /** Moves the tasks to the typed date. */
  async moveToTypedDate() {
    const { moving } = this;
    const understood = await moving?.preview.read(moving.text, this.clock.now);
    if (moving && moving === this.moving && understood?.due) this.endMove({ day: understood.due, time: understood.time });
  }

  /** Closes the dialog and moves the tasks. @param {Pick<When, "day" | "time"> | null} [when] the chosen date; null removes the date, undefined cancels */
  endMove(when) {
    const { moving } = this;
    this.moving = null;
    this.#element.closeDialog();
    this.#element.draw();
    if (!moving || when === undefined) return;
    this.selection.end();
    void this.actions.move(moving.tasks, when);
  }

  /** @param {Task[]} tasks */
  remove(tasks) {
    if (tasks.some(({ id }) => id === this.editing?.task.id)) {
      this.editing = null;
      Editing.forget();
    }
    void this.actions.remove(tasks);
  }

  /** Returns the selected tasks if this one is among them, else only this one. @param {Task} task */
  affectedBy(task) {
    return this.selection.ids.has(task.id) ? this.selected : [task];
  }

  get selected() {
    return this.tasks.filter(({ id }) => this.selection.ids.has(id));
  }

  /** Returns the selected tasks and ends the selection. */
  takeSelected() {
    const { selected } = this;
    this.selection.end();
    return selected;
  }

  /** @param {Task} task @param {boolean} range from the task that was selected before */
  pick(task, range) {
    this.current = task.id;
    this.selection.pick(task.id, range ? this.tasks.map(({ id }) => id) : undefined);
  }

  #announceSelection() {
    this.#element.emit("todo-selection", { tasks: this.selected.map(({ id, title }) => ({ id, title })) });
    this.changed();
  }
}

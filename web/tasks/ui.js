// @ts-check
import { loadModule } from "../http.js";
import { TaskActions } from "./actions.js";
import { moveEarlierTexts, problemOfDraft, TaskDraft } from "./draft.js";
import { Reader } from "./data/reader.js";
import { Editor } from "./editor.js";
import { MoveDialog, RowMenu } from "./move-dialog.js";
import { Navigation } from "./navigation.js";
import { arrange } from "./sections.js";
import { Selection } from "./selection.js";
import { UndoHistory } from "./undo.js";
import { Window } from "./window.js";
import { isBlank } from "../words.js";
/** @import {Unsaved} from "../unsaved.js" */
/** @import {Api} from "./data/api.js" */
/** @import {TodoTasks} from "./element.js" */
/** @import {ListPlace, Section, Task} from "./types" */

/** The state of the list: its rows, and what belongs to them. */
export class Ui {
  /** @type {Section[]} */
  sections = [];
  /** The task of each row, null if it is not loaded. @type {(Task | null)[]} */
  rows = [];
  /** The loaded tasks, in order. @type {Task[]} */
  tasks = [];
  filtersOpen = false;
  /** The task with the keyboard focus. @type {number | null} */
  current = null;
  /** The task whose row is reached by Tab. @type {number | null} */
  tabStop = null;
  /** What is loaded after the list; null until then. @type {typeof import("./controls.js") | null} */
  controls = null;
  window = new Window();
  actions = new TaskActions(this);
  undo = new UndoHistory(this);
  #element;

  /** @param {TodoTasks} element @param {Api} api @param {Unsaved} unsaved */
  constructor(element, api, unsaved) {
    this.#element = element;
    this.api = api;
    this.unsaved = unsaved;
    this.editor = new Editor(this, element);
    this.moveDialog = new MoveDialog(this, element);
    this.navigation = new Navigation(this, element);
    this.rowMenu = new RowMenu(element);
    this.selection = new Selection(this, element);
    moveEarlierTexts(unsaved);
    this.reader = new Reader(api, unsaved, {
      seen: () => element.seen,
      range: () => this.window.seen,
      changed: this.changed,
      renewed: () => {
        element.emit("todo-changed");
        void this.editor.compare();
      },
      unauthorized: () => element.emit("todo-unauthorized"),
      settled: (change, outcome) => this.actions.settled(change, outcome),
      renamed: (from, to) => this.#renumber(from, to),
    });
    this.draft = new TaskDraft(api, unsaved, this.clock, this.changed);
  }

  /** Schedules a drawing. */
  changed = () => this.#element.changed();
  scrolled = () => this.#element.scrolled();
  /** Announces a text to screen readers. @param {string} text */
  announce = (text) => this.#element.announce(text);

  openNotifications() {
    this.#element.emit("todo-notifications");
  }

  /** Whether the notice has the focus or the pointer. */
  get reading() {
    return this.#element.reading;
  }

  /** Whether an agent can do tasks. */
  get agents() {
    return this.#element.options.agents;
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

  get editing() {
    return this.editor.editing;
  }

  /** @param {number | null} id */
  task(id) {
    return this.tasks.find((task) => task.id === id);
  }

  /** Returns the task whose row contains an element. @param {Element} element */
  taskOf(element) {
    const row = /** @type {HTMLElement | null} */ (element.closest("[data-row]"));
    return row ? this.task(Number(row.dataset.row)) : undefined;
  }

  /** @param {ListPlace} place what is shown first */
  async begin(place) {
    const isLast = this.navigation.begin();
    this.editor.restore();
    this.moveDialog.restore();
    this.unsaved.addEventListener("change", this.#reread);
    void this.pending.resume();
    if (this.editing) await this.loadControls();
    if (!isLast()) return;
    const { editing } = this;
    const isRestored = editing && (place.task ?? editing.task.id) === editing.task.id;
    await this.navigation.go(isRestored ? { ...place, view: editing.view ?? place.view, task: editing.task.id } : place);
  }

  /** Loads what is not needed to show the list. @returns {Promise<typeof import("./controls.js")>} */
  async loadControls() {
    this.controls ??= await loadModule(() => import("./controls.js"));
    this.changed();
    return this.controls;
  }

  close() {
    this.reader.close();
    this.actions.close();
    this.unsaved.removeEventListener("change", this.#reread);
    this.navigation.close();
  }

  /** Reads what is stored again: texts of another tab were taken over, or all were discarded. */
  #reread = () => {
    this.draft.read();
    void this.pending.resume();
    if (this.editor.reread()) void this.navigation.open(this.editing?.view ?? this.view).then(() => this.editor.showRestored());
    this.moveDialog.restore();
    this.changed();
  };

  /** Uses the number that the server gave to a new task. @param {number} from @param {number} to */
  #renumber(from, to) {
    if (this.editing?.task.id === from) this.editing.renumber(to);
    if (this.current === from) this.current = to;
    if (this.navigation.marked === from) this.navigation.marked = to;
    if (this.selection.ids.delete(from)) this.selection.ids.add(to);
    if (this.actions.leaving.delete(from)) this.actions.leaving.add(to);
  }

  /** Sorts the tasks into sections. */
  arrange() {
    this.sections = arrange(this.pages, this.pending, this.clock, this.editing);
    this.rows = this.sections.flatMap(({ tasks }) => tasks);
    this.tasks = this.rows.filter((task) => task !== null);
    if (this.tasks.length === this.rows.length) this.selection.removeMissing();
  }

  /** Chooses the row that is reached by Tab: the focused one, or the first visible one. */
  chooseTabStop() {
    const drawn = this.window.drawn.flatMap(({ section, first, end }) => section.tasks.slice(first, end).filter((task) => task !== null));
    const at = drawn.find(({ id }) => id === this.current) ?? this.rows[this.window.seen[0]] ?? drawn[0];
    this.tabStop = at?.id ?? null;
  }

  toggleFilters() {
    this.filtersOpen = !this.filtersOpen;
    this.changed();
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
    if (isBlank(text) || problemOfDraft(text, understood?.title)) return;
    const { task } = this.draft;
    const added = this.actions.add(text, fields, task); // stored before the text is removed
    this.draft.write("");
    if (this.navigation.missing) void this.navigation.open(this.view);
    this.#element.draw(); // the next key belongs to another task
    await added;
  }

  /** @param {Task[]} tasks */
  remove(tasks) {
    void this.actions.remove(tasks);
    this.editor.forget(tasks);
  }

  /** Saves the open editor and sends what is stored, also what is too old to be sent without asking, but nothing of an earlier session. */
  async sendUnsaved() {
    await this.editor.endFirst();
    this.pending.sendAgain(this.pending.old.filter(({ earlier }) => !earlier));
  }

  /** Focuses a part of a row that may not be loaded yet. @param {number} row @param {string} part */
  async focusRow(row, part) {
    this.window.scrollTo(row);
    if (this.rows[row] === null) await this.reader.load([row, row]);
    this.arrange();
    const task = this.rows[row];
    if (!task) return;
    this.current = task.id;
    this.#element.offerFocus(task.id, part);
  }
}

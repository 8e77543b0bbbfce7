// @ts-check
import { HttpError } from "../chat/protocol.js";
import { storage } from "../chat/storage.js";
import { LIST } from "../texts.js";
import { MAX_QUERY_WORDS } from "./data/api.js";
import { belongs } from "./sections.js";
/** @import {TodoTasks} from "./element.js" */
/** @import {Filter, ListPlace, Sort, View} from "./types" */
/** @import {Ui} from "./ui.js" */

const SEARCH_PAUSE = 200; // ms after the last letter
const SORTS = "todo.sort."; // and the view, in the browser's storage
const MARKED = 2500; // ms
/** @type {View[]} */
const WHERE = ["deleted", "today", "upcoming"];
/** @type {Filter} */
export const NO_FILTER = { query: "", label: "", priority: "" };

/** Goes to the views of the list and to single tasks. */
export class Navigation {
  /** The task that is highlighted, because it was asked for. @type {number | null} */
  marked = null;
  /** Why the task of the address is not shown. */
  missing = "";
  /** Whether what `go` was asked for is not shown yet. */
  going = false;
  /** The task that was to be opened, but is deleted or missing. @type {number | null} */
  #unopened = null;
  /** Counts where the user went. */
  #steps = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #search;
  #ui;
  #element;

  /** @param {Ui} ui @param {TodoTasks} element */
  constructor(ui, element) {
    this.#ui = ui;
    this.#element = element;
  }

  /** What is shown. @returns {ListPlace & {view: View}} */
  get place() {
    const { editing, pages, view } = this.#ui;
    const task = editing?.task.id ?? this.#unopened;
    return { view, filter: { ...NO_FILTER, ...pages.filter }, task: task !== null && task > 0 ? task : null };
  }

  close() {
    clearTimeout(this.#search);
  }

  /** Notes that the user goes elsewhere. What is returned says whether they have gone nowhere since; what is late shows nothing then. */
  begin() {
    const step = ++this.#steps;
    this.going = false;
    this.missing = "";
    this.#unopened = null;
    return () => step === this.#steps;
  }

  /** Shows a view with a filter, and opens a task. @param {ListPlace} place */
  async go(place) {
    const isLast = this.begin();
    const { editor, editing } = this.#ui;
    clearTimeout(this.#search);
    this.going = true;
    const stays = editing !== null && editing.task.id !== place.task && !(await editor.endFirst());
    if (!isLast()) return;
    this.going = !stays && place.task !== null;
    if (!stays) await this.#goTo(place, isLast);
    if (!isLast()) return;
    this.going = false;
    this.#element.tellPlace({ replace: !stays });
    this.#ui.changed();
  }

  /** @param {ListPlace} place @param {() => boolean} isLast */
  async #goTo({ view, filter, task }, isLast) {
    const { view: shown, filter: active } = this.place;
    const { editing } = this.#ui;
    const there = shown === view && JSON.stringify(active) === JSON.stringify({ ...NO_FILTER, ...filter }) && this.#ui.pages.current;
    if (task === null || (view && !there)) await this.#open(view ?? "today", filter);
    if (task === null || !isLast()) return;
    if (this.#ui.editing) this.#ui.editor.showRestored(isLast);
    else if (!editing) await this.#openTask(task, isLast); // else the user has closed it meanwhile
  }

  /** Opens a task in the view that contains it. @param {number} id @param {() => boolean} isLast */
  async #openTask(id, isLast) {
    await this.show(id, isLast);
    if (!this.#ui.controls) await this.#ui.loadControls();
    if (!isLast()) return;
    const task = this.#ui.task(id);
    if (task && task.status !== "deleted") this.#ui.editor.edit(task, isLast);
    else this.#unopened = id;
  }

  /** @param {View} view @param {Partial<Filter>} [filter] */
  async open(view, filter) {
    this.begin();
    await this.#open(view, filter);
  }

  /** @param {View} view @param {Partial<Filter>} [filter] */
  async #open(view, filter = {}) {
    const ui = this.#ui;
    clearTimeout(this.#search);
    if (view !== ui.view) {
      ui.selection.end();
      this.#element.toTop();
    }
    ui.draft.day = view === "today" ? ui.today : null;
    await ui.reader.open(view, filter, sortOf(view));
  }

  /** @param {Partial<Filter>} filter */
  async setFilter(filter) {
    const { pages, view } = this.#ui;
    await this.open(view, filter);
    if (pages.filtered && pages.current) this.#ui.announce(LIST.found(pages.total));
  }

  /** How this view is sorted. */
  get sort() {
    return sortOf(this.#ui.view);
  }

  /** @param {Sort} sort */
  setSort(sort) {
    const { view } = this.#ui;
    storage.set(SORTS + view, sort);
    this.#element.toTop();
    void this.open(view);
  }

  /** @param {string} text */
  search(text) {
    this.begin();
    clearTimeout(this.#search);
    this.#search = setTimeout(() => void this.setFilter({ query: text.trim() }), SEARCH_PAUSE);
  }

  /** Shows a task in the view that contains it. @param {number} id @param {() => boolean} [isLast] of the navigation that shows it */
  async show(id, isLast = this.begin()) {
    const ui = this.#ui;
    const inPlace = ui.editing?.task.id === id && ui.editing.view === ui.view;
    if (id > 0 && !inPlace) await this.#openViewOf(id, isLast);
    if (!isLast() || !ui.task(id)) return;
    ui.current = this.marked = id;
    this.#element.offerFocus(id, "open");
    setTimeout(() => {
      if (this.marked === id) this.marked = null;
      ui.changed();
    }, MARKED);
  }

  /** Opens the view with the task; if its first page lacks the task, filters by its title. @param {number} id @param {() => boolean} isLast */
  async #openViewOf(id, isLast) {
    const ui = this.#ui;
    const found = await ui.reader.task(id).catch((error) => void (isLast() && this.#failToFind(id, error)));
    if (!isLast() || !found || (ui.task(id)?.status === found.status && belongs(ui.view, found, ui.today))) return;
    const view = found.status === "completed" ? "done" : WHERE.find((view) => belongs(view, found, ui.today)) ?? "all";
    const words = found.title.split(/\s+/).slice(0, MAX_QUERY_WORDS);
    for (const query of ["", words.map((word) => word.replace(/^#+/, "")).join(" ").trim()]) {
      await this.#open(view, { query, label: "", priority: "" });
      if (!isLast()) return;
      ui.arrange();
      if (ui.task(id)) return;
    }
  }

  /** @param {number} id @param {unknown} error */
  #failToFind(id, error) {
    const { actions, reader } = this.#ui;
    if (error instanceof HttpError && error.status === 404) [this.missing, this.#unopened] = [LIST.noTask(id), id];
    else if (error instanceof HttpError) actions.showError(error);
    else reader.failed(error);
  }
}

/** Returns how a view was sorted the last time. @param {View} view @returns {Sort} */
function sortOf(view) {
  const stored = storage.get(SORTS + view);
  return stored && Object.hasOwn(LIST.sorts, stored) ? /** @type {Sort} */ (stored) : "date";
}

// @ts-check
import { removeBidiControls } from "../words.js";
import { render } from "../vendor/lit-html/lit-html.js";
import { Api } from "./data/api.js";
import { Focus } from "./focus.js";
import { NO_FILTER } from "./navigation.js";
import { Ui } from "./ui.js";
import { listView } from "./views/list.js";
/** @import {Command} from "../shortcuts.js" */
/** @import {Unsaved} from "../unsaved.js" */
/** @import {Dragging} from "./drag.js" */
/** @import {Part} from "./focus.js" */
/** @import {Filter, ListPlace, View} from "./types" */

const PRINTING = ["beforeprint", "afterprint"];
const DRAGS = ["dragstart", "dragover", "drop", "dragend"];

const TEXT_FIELDS = "textarea, select, input:not([type=checkbox])";

/**
 * The list of tasks, a custom element. Its events: `todo-unauthorized` when nobody is signed in, `todo-selection` with the
 * selected tasks, `todo-changed` when it was loaded again, `todo-place` when another view, filter or task is shown (`replace`: because
 * of `setPlace`), `todo-delegate` when an agent shall do a task, and `todo-notifications` when the user wants to switch them on.
 */
export class TodoTasks extends HTMLElement {
  /** The options, set before it is connected: `fetch`, whether agents can work on tasks, what is not saved yet, and what is shown first. */
  options = /** @type {{fetch: typeof fetch, agents: boolean, unsaved: Unsaved, place: ListPlace}} */ ({});
  /** @type {Ui | null} */
  #ui = null;
  #load = /** @type {() => void} */ (() => {});
  /** Resolves once tasks are shown, or the reason why there are none. @type {Promise<void>} */
  loaded = new Promise((resolve) => (this.#load = resolve));
  #root = document.createElement("div");
  #news = document.createElement("p");
  #frame = 0;
  #scrollFrame = 0;
  /** Whether letters are composed, which a drawing would interrupt. */
  #composing = false;
  /** The focus after the next drawing. @type {Part | null} */
  #wanted = null;
  #width = 0;
  /** The place that the page knows. */
  #known = "";
  /** @type {Dragging | null} */
  #dragging = null;
  #sizes = new ResizeObserver(() => this.#resized());

  connectedCallback() {
    this.#root = Object.assign(document.createElement("div"), { className: "tasks" });
    this.#news = Object.assign(document.createElement("p"), { className: "visually-hidden", ariaLive: "polite" });
    this.append(this.#root, this.#news);
    const { fetch, unsaved, place } = this.options;
    const ui = (this.#ui = new Ui(this, new Api(fetch), unsaved));
    this.#root.addEventListener("compositionstart", () => (this.#composing = true));
    this.#root.addEventListener("compositionend", () => {
      this.#composing = false;
      this.changed();
    });
    this.#root.addEventListener("focusin", ({ target }) => this.#focused(/** @type {Element} */ (target)));
    this.#sizes.observe(this);
    visualViewport?.addEventListener("resize", this.#measureKeyboard);
    for (const type of PRINTING) addEventListener(type, this.#print);
    this.draw();
    void ui.begin(place).then(() => {
      this.draw();
      this.#load();
    });
    void this.loaded.then(() => this.#takeControls(ui));
  }

  /** Takes gestures and keys once the list is shown. @param {Ui} ui */
  async #takeControls(ui) {
    const { Dragging, Swiping } = await ui.loadControls();
    if (ui !== this.#ui) return; // the list was removed meanwhile
    this.#dragging = new Dragging(ui);
    for (const type of DRAGS) document.addEventListener(type, this.#dragging); // tasks are dropped on the side bar's views, too
    new Swiping(ui).listen(this.#root);
  }

  disconnectedCallback() {
    cancelAnimationFrame(this.#frame);
    cancelAnimationFrame(this.#scrollFrame);
    for (const type of DRAGS) if (this.#dragging) document.removeEventListener(type, this.#dragging);
    for (const type of PRINTING) removeEventListener(type, this.#print);
    this.#sizes.disconnect();
    visualViewport?.removeEventListener("resize", this.#measureKeyboard);
    this.#ui?.close();
    this.#ui = null;
    this.replaceChildren();
  }

  /** Asks for changes now, and opens the dialogs that waited until the list is visible. */
  refresh() {
    this.#ui?.reader.poller.poll();
    this.changed();
  }

  /** Loads the list again: what belongs to a task has changed that is no field of it. */
  reload() {
    void this.#ui?.reader.refresh();
  }

  /** What is shown. @returns {ListPlace & {view: View}} */
  get place() {
    return this.#ui?.navigation.place ?? { view: "today", filter: NO_FILTER, task: null };
  }

  /** The title of the task that is open. */
  get taskTitle() {
    return this.#ui?.editing?.task.title ?? null;
  }

  /** Shows a view, without the filters that are not named, and opens a task. @param {{view?: View | null, filter?: Partial<Filter>, task?: number | null}} place */
  setPlace({ view = this.place.view, filter = {}, task = null }) {
    this.#known = ""; // the page is told of the place, even if it is the same
    void this.#ui?.navigation.go({ view, filter: { ...NO_FILTER, ...filter }, task });
  }

  /** Shows the tasks of the view that contain a text. @param {string} text */
  search(text) {
    this.#ui?.navigation.search(text);
  }

  /** Shows what another app has shared in the field for a new task, unless something is typed in it. @param {string} text */
  share(text) {
    this.#ui?.draft.share(text);
    this.changed();
  }

  /** Saves the open editor and sends what is not saved yet. */
  async sendUnsaved() {
    await this.#ui?.sendUnsaved();
  }

  /** Runs a command of the keyboard; returns false if there is nothing to do. @param {Command} command @param {HTMLElement} target what has the focus */
  perform(command, target) {
    const ui = this.#ui;
    if (!ui?.controls) return false;
    this.#drawPending();
    const focused = target.isConnected ? target : /** @type {HTMLElement} */ (document.activeElement ?? document.body);
    return ui.controls.perform(command, { ui, element: this, target: focused });
  }

  undo() {
    this.#drawPending();
    void this.#ui?.undo.undo();
  }

  redo() {
    this.#drawPending();
    void this.#ui?.undo.redo();
  }

  /** Draws what the key before has changed: a box that the user has ticked would stay ticked. */
  #drawPending() {
    if (this.#frame !== 0) this.draw();
  }

  unselect() {
    this.#ui?.selection.end();
  }

  /** Whether the list is visible. */
  get seen() {
    return document.visibilityState === "visible" && this.#uncovered;
  }

  /** Whether a phone shows it, and not the assistant. */
  get #uncovered() {
    return this.checkVisibility?.({ checkVisibilityCSS: true, visibilityProperty: true }) ?? true;
  }

  /** Whether the focus is in a text field, also in one outside the list. */
  get typing() {
    return document.activeElement?.matches(TEXT_FIELDS) ?? false;
  }

  /** The name of the editor's field with the focus. */
  get focusedInput() {
    const field = /** @type {HTMLInputElement | null} */ (this.querySelector(".task-form :focus"));
    return field?.name;
  }

  /** Whether the notice has the pointer or the focus. */
  get reading() {
    return this.querySelector(".notice-bar:is(:hover, :focus-within)") !== null;
  }

  /** @param {string} name @param {object} [detail] */
  emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  /** Announces a text to screen readers. @param {string} text */
  announce(text) {
    this.#news.textContent = removeBidiControls(text);
  }

  /** Draws once, in the next frame. */
  changed() {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#composing || this.draw());
  }

  scrolled() {
    cancelAnimationFrame(this.#scrollFrame);
    this.#scrollFrame = requestAnimationFrame(() => {
      const ui = this.#ui;
      if (!ui) return;
      if (ui.window.exhausted) this.#paint(ui, true);
      void ui.reader.loadNearby();
    });
  }

  toTop() {
    if (this.#ui?.window.scroller) this.#ui.window.scroller.scrollTop = 0;
  }

  draw() {
    const ui = this.#ui;
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (!ui) return;
    ui.arrange();
    this.#paint(ui, false);
    const field = /** @type {HTMLInputElement | null} */ (this.querySelector("[data-part=new]"));
    if (field && field.value !== ui.draft.text) field.value = ui.draft.text; // keeps what was typed just now
    queueMicrotask(() => this.tellPlace()); // after all that happens with this drawing
  }

  /** Tells the page where the user is. @param {{replace?: boolean}} [how] `replace`: the page asked for it */
  tellPlace({ replace = false } = {}) {
    const ui = this.#ui;
    const known = JSON.stringify(ui?.navigation.place);
    if (!ui || ui.navigation.going || known === this.#known) return;
    this.#known = known;
    this.emit("todo-place", { place: ui.navigation.place, replace });
  }

  /** Opens the dialogs with content, unless the assistant covers the list, or closes those without. @param {Ui} ui @param {boolean} open */
  #switchDialogs({ moveDialog, rowMenu, editor }, open) {
    for (const [name, content] of Object.entries({ move: moveDialog.moving, "row-menu": rowMenu.acting, "task-sheet": editor.sheet })) {
      const dialog = /** @type {HTMLDialogElement | null} */ (this.querySelector(`dialog.${name}`));
      if (!dialog || dialog.open === Boolean(content) || open !== Boolean(content) || (open && !this.#uncovered)) continue;
      if (open) dialog.showModal();
      else dialog.close(); // before the row is drawn, to which the focus returns
      if (open && name === "task-sheet") dialog.focus(); // not its first field, which would open the keyboard
    }
  }

  /** Draws the visible rows. @param {Ui} ui @param {boolean} scrolled what is seen stays, the rest follows */
  #paint(ui, scrolled) {
    const { window } = ui;
    this.#switchDialogs(ui, false);
    const anchors = window.anchors(ui.editing?.task.id);
    const focus = new Focus(this, ui.tasks, this.#wanted, ui.actions.leaving);
    this.#wanted = null;
    const shown = focus.wanted?.id ?? null;
    for (let tries = 0, right = false; tries < 3 && !right; tries++) {
      window.choose(ui.sections);
      ui.chooseTabStop();
      render(listView(ui), this.#root);
      window.scroller ??= this.querySelector(".rows");
      right = window.measure();
      if (!right) window.choose(ui.sections);
      if (shown !== null) right = !window.show(shown) && right;
      else if (window.keep(anchors)) right = false;
    }
    this.#switchDialogs(ui, true);
    focus.restore(ui.tasks, scrolled);
  }

  /** Draws and focuses at once, because the next key belongs to it. @param {number} id @param {string} part */
  focusOn(id, part) {
    this.#wanted = { id, part };
    this.draw();
  }

  /** Draws and focuses what is shown late, unless the user types in a text field. @param {number} id @param {string} part */
  offerFocus(id, part) {
    if (this.typing) this.draw();
    else this.focusOn(id, part);
  }

  /** Draws, and scrolls to what is wrong in the editor. */
  revealProblem() {
    this.draw();
    this.querySelector(".task-form [role=alert]")?.scrollIntoView({ block: "nearest" });
  }

  /** Focuses the field that adds tasks; done and deleted tasks have none. */
  focusAdding() {
    const view = this.#ui?.view;
    if (view === "done" || view === "deleted") this.setPlace({ view: "today" });
    this.draw();
    /** @type {HTMLElement | null} */ (this.querySelector("[data-part=new]"))?.focus();
  }

  /** @param {Element} target */
  #focused(target) {
    const row = /** @type {HTMLElement | null} */ (target.closest("[data-row]"));
    const id = Number(row?.dataset.row);
    if (!row || !this.#ui || this.#ui.current === id) return;
    this.#ui.current = id;
    this.changed();
  }

  /** Tells the style how much of the window an on-screen keyboard covers. */
  #measureKeyboard = () => {
    const { height = innerHeight, offsetTop = 0, scale = 1 } = visualViewport ?? {};
    this.style.setProperty("--keyboard", `${scale === 1 ? Math.max(0, innerHeight - height - offsetTop) : 0}px`);
  };

  /** @param {Event} event */
  #print = ({ type }) => {
    if (!this.#ui) return;
    this.#ui.window.whole = type === "beforeprint";
    this.draw();
  };

  #resized() {
    if (this.#width !== this.clientWidth) this.#ui?.window.forget();
    this.#width = this.clientWidth;
    this.changed();
  }
}

customElements.define("todo-tasks", TodoTasks);

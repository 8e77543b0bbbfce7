// @ts-check
import { render } from "../vendor/lit-html/lit-html.js";
import { Api } from "./data/api.js";
import { Dragging } from "./drag.js";
import { Focus } from "./focus.js";
import { keydown } from "./keys.js";
import { Ui } from "./ui.js";
import { listView } from "./views/list.js";
/** @import {Part} from "./focus.js" */

/**
 * The list of tasks, a custom element. Its events: `todo-unauthorized` when nobody is signed in, `todo-selection` with the
 * selected tasks, and `todo-changed` when it was loaded again.
 */
export class TodoTasks extends HTMLElement {
  /** The options: `fetch`, and whether agents can work on tasks. @type {{fetch?: typeof fetch, agents?: boolean}} */
  options = {};
  /** @type {Ui | null} */
  #ui = null;
  #root = document.createElement("div");
  #news = document.createElement("p");
  #frame = 0;
  #scrollFrame = 0;
  /** The focus after the next drawing. @type {Part | null} */
  #wanted = null;
  #width = 0;
  #sizes = new ResizeObserver(() => this.#resized());
  #places = new MutationObserver(() => this.#ui?.reader.poller.poll());

  connectedCallback() {
    this.#root = Object.assign(document.createElement("div"), { className: "tasks" });
    this.#news = Object.assign(document.createElement("p"), { className: "visually-hidden", ariaLive: "polite" });
    this.append(this.#root, this.#news);
    const ui = (this.#ui = new Ui(this, new Api(this.options.fetch)));
    const dragging = new Dragging(ui);
    for (const type of /** @type {const} */ (["dragstart", "dragover", "drop", "dragend"])) this.#root.addEventListener(type, dragging);
    this.#root.addEventListener("keydown", (event) => keydown(event, ui, this));
    this.#root.addEventListener("focusin", ({ target }) => this.#focused(/** @type {Element} */ (target)));
    this.#sizes.observe(this);
    if (this.parentElement) this.#places.observe(this.parentElement, { attributes: true }); // shown or hidden by the page's tab
    this.draw();
    ui.begin();
  }

  disconnectedCallback() {
    cancelAnimationFrame(this.#frame);
    cancelAnimationFrame(this.#scrollFrame);
    this.#sizes.disconnect();
    this.#places.disconnect();
    this.#ui?.close();
    this.#ui = null;
    this.replaceChildren();
  }

  /** Asks for changes now. */
  refresh() {
    this.#ui?.reader.poller.poll();
  }

  /** Shows a task in the view that contains it. @param {number} taskId */
  show(taskId) {
    void this.#ui?.show(taskId);
  }

  unselect() {
    this.#ui?.selection.end();
  }

  /** Whether the list is visible. */
  get seen() {
    const visible = this.checkVisibility?.({ checkVisibilityCSS: true, visibilityProperty: true }) ?? true;
    return document.visibilityState === "visible" && visible;
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
    this.#news.textContent = text;
  }

  /** Draws once, in the next frame. */
  changed() {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.draw());
  }

  scrolled() {
    cancelAnimationFrame(this.#scrollFrame);
    this.#scrollFrame = requestAnimationFrame(() => {
      const ui = this.#ui;
      if (!ui) return;
      if (ui.window.exhausted) this.#paint(ui, true);
      void ui.reader.loadNearby(ui.window.nearEnd);
    });
  }

  toTop() {
    if (this.#ui?.window.scroller) this.#ui.window.scroller.scrollTop = 0;
  }

  draw() {
    const ui = this.#ui;
    cancelAnimationFrame(this.#frame);
    if (!ui) return;
    ui.arrange();
    this.#paint(ui, false);
    const field = /** @type {HTMLInputElement | null} */ (this.querySelector("[data-part=new]"));
    if (field && field.value !== ui.draft.text) field.value = ui.draft.text; // keeps what was typed just now
    const dialog = this.querySelector("dialog");
    if (ui.moving && !dialog?.open) dialog?.showModal();
  }

  closeDialog() {
    this.querySelector("dialog")?.close();
  }

  /** Draws the visible rows. @param {Ui} ui @param {boolean} scrolled what is seen stays, the rest follows */
  #paint(ui, scrolled) {
    const { window } = ui;
    const anchors = window.anchors();
    const focus = new Focus(this, ui.tasks, this.#wanted);
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
    focus.restore(ui.tasks, scrolled);
  }

  /** Draws and focuses at once, because the next key belongs to it. @param {number} id @param {string} part */
  focusOn(id, part) {
    this.#wanted = { id, part };
    this.draw();
  }

  focusAdding() {
    /** @type {HTMLElement | null} */ (this.querySelector("[data-part=new]"))?.focus();
  }

  /** Scrolls to a row and focuses it. @param {number} id */
  reveal(id) {
    this.focusOn(id, "open");
  }

  /** @param {Element} target */
  #focused(target) {
    const row = /** @type {HTMLElement | null} */ (target.closest("[data-row]"));
    const id = Number(row?.dataset.row);
    if (!row || !this.#ui || this.#ui.current === id) return;
    this.#ui.current = id;
    this.changed();
  }

  #resized() {
    if (this.#width !== this.clientWidth) this.#ui?.window.forget();
    this.#width = this.clientWidth;
    this.changed();
  }
}

if (!customElements.get("todo-tasks")) customElements.define("todo-tasks", TodoTasks); // a page may define its own

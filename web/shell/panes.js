// @ts-check
import { storage } from "../chat/storage.js";
import { TEXTS } from "../texts.js";
import { byId } from "./elements.js";
/** @import {TodoTasks} from "../tasks/element.js" */

/** @typedef {"tasks" | "chat"} Pane */

const SHOWN = "todo.pane";
const FOLDED = "todo-assistant"; // also in early.js; it belongs to the browser and stays after signing out
const PHONE = matchMedia("(max-width: 43.74em)"); // as in shell.css
const PRINT = matchMedia("print");

/** The list and the assistant: side by side, where the assistant folds to a button, or the assistant over the list on a phone. */
export class Panes {
  /** Null while nobody is signed in. @type {TodoTasks | null} */
  list = null;
  #divider = new Divider();
  #showed;
  #tasks = byId("tasks");
  #button = byId("fold");
  /** @type {HTMLElement | null} */
  #assistantTab = document.querySelector("#bottom [data-assistant]");

  /** @param {(pane: Pane) => void} showed is called with what a phone shows */
  constructor(showed) {
    this.#showed = showed;
    PHONE.addEventListener("change", () => this.#draw());
    this.#button.addEventListener("click", () => this.#toggle());
    this.#assistantTab?.addEventListener("click", () => this.show("chat"));
    this.#draw();
  }

  /** Shows a new list. @param {TodoTasks["options"]} options */
  openList(options) {
    this.list = /** @type {TodoTasks} */ (document.createElement("todo-tasks"));
    this.list.setAttribute("role", "region");
    this.list.setAttribute("aria-label", TEXTS.tasks);
    this.list.options = options;
    this.#tasks.replaceChildren(this.list);
    return this.list;
  }

  closeList() {
    this.list = null;
    this.#tasks.replaceChildren();
  }

  /** Shows a pane: the assistant's also if it was folded. @param {Pane} pane */
  show(pane) {
    if (PHONE.matches) {
      storage.set(SHOWN, pane);
      this.#showed(pane);
    } else if (pane === "chat") storage.set(FOLDED, null);
    this.#draw();
  }

  /** Whether the pane is visible. @param {Pane} pane */
  shows(pane) {
    const assistant = PHONE.matches ? storage.get(SHOWN) === "chat" : storage.get(FOLDED) !== "folded";
    return pane === "chat" ? assistant : !(PHONE.matches && assistant);
  }

  /** Without messages, the assistant is narrow. @param {boolean} empty */
  set empty(empty) {
    this.#divider.empty = empty;
  }

  #toggle() {
    if (PHONE.matches) {
      this.show("tasks");
      this.#assistantTab?.focus(); // the button is hidden
      return;
    }
    storage.set(FOLDED, this.shows("chat") ? "folded" : null);
    this.#draw();
  }

  #draw() {
    if (PRINT.matches) return; // where widths are those of the paper
    const { dataset } = document.documentElement;
    const shown = this.shows("chat");
    dataset.pane = this.shows("tasks") ? "tasks" : "chat";
    dataset.assistant = shown ? "open" : "folded";
    const label = PHONE.matches ? TEXTS.backToTasks : shown ? TEXTS.foldAssistant : TEXTS.showAssistant;
    this.#button.ariaLabel = this.#button.title = label;
    this.#button.ariaExpanded = String(shown);
    this.#divider.measure();
    this.list?.refresh(); // it loads nothing while it is hidden
  }
}

const WIDTH = "todo-assistant-width"; // also in early.js; it belongs to the browser and stays after signing out
const USUAL = "clamp(23.75rem, 30vw, 30rem)"; // also in early.js
const STEP = 24; // px for an arrow key
const LEAST = 320; // px
const WIDE = matchMedia("(min-width: 68.75em)"); // as in shell.css

/** The line between the list and the assistant, by which the assistant gets wider or narrower. */
class Divider {
  #element = byId("divider");
  #assistant = byId("assistant");
  #empty = storage.get("todo.thread") === null; // as in early.js
  /** Whether the width was chosen since the page was opened. */
  #chosen = false;

  constructor() {
    for (const type of ["pointerdown", "pointermove", "pointerup", "keydown", "dblclick"]) this.#element.addEventListener(type, this);
    new ResizeObserver(() => this.measure()).observe(this.#assistant);
  }

  /** @param {boolean} empty */
  set empty(empty) {
    this.#empty = empty;
    this.#apply();
  }

  /** Tells assistive technologies the width. */
  measure() {
    this.#element.ariaValueMin = String(LEAST);
    this.#element.ariaValueMax = String(Math.max(LEAST, Math.round(most())));
    this.#element.ariaValueNow = String(Math.round(this.#assistant.offsetWidth));
  }

  /** @param {Event} event */
  handleEvent(event) {
    if (event instanceof KeyboardEvent) return this.#keydown(event);
    if (event.type === "dblclick") return this.#choose(null);
    const { type, pointerId, clientX } = /** @type {PointerEvent} */ (event);
    if (type === "pointerdown") this.#element.setPointerCapture(pointerId);
    else if (type === "pointerup") this.#element.releasePointerCapture(pointerId);
    else if (this.#element.hasPointerCapture(pointerId)) this.#choose(this.#assistant.getBoundingClientRect().right - clientX);
  }

  /** @param {KeyboardEvent} event */
  #keydown(event) {
    const width = this.#assistant.offsetWidth;
    /** @type {Record<string, number>} */
    const widths = { ArrowLeft: width + STEP, ArrowRight: width - STEP, Home: LEAST, End: most() };
    const chosen = widths[event.key];
    if (chosen === undefined) return;
    event.preventDefault();
    this.#choose(chosen);
  }

  /** @param {number | null} width in px; null for the usual one */
  #choose(width) {
    this.#chosen = width !== null;
    storage.set(WIDTH, width === null ? null : `${Math.round(Math.max(LEAST, Math.min(width, most())))}px`);
    this.#apply();
  }

  #apply() {
    const { style } = document.documentElement;
    if (this.#empty && !this.#chosen) style.removeProperty("--assistant");
    else style.setProperty("--assistant", storage.get(WIDTH) ?? USUAL);
    this.measure();
  }
}

/** The widest assistant in px, which leaves room for the list; as in shell.css. */
const most = () => Math.min(innerWidth * 0.6, innerWidth - (WIDE.matches ? 640 : 320));

// @ts-check
import { LIST } from "../texts.js";
import { dayWords, plusDays } from "../words.js";
/** @import {Task} from "./types" */
/** @import {Ui} from "./ui.js" */

const BEGINS = 12; // px, until which the movement may still scroll
const ACTS = 88; // px
const BACK = 160; // ms

/** A movement of a finger over a row. @typedef {{id: number, row: HTMLElement, task: Task, x: number, y: number, swiping: boolean}} Touched */

/** Completes a task whose row is swiped to the right, and moves it to tomorrow to the left. Scrolling stays the browser's. */
export class Swiping {
  /** @type {Touched | null} */
  #touched = null;
  /** Whether the click after a swipe is to be ignored. */
  #swiped = false;
  #ui;

  /** @param {Ui} ui */
  constructor(ui) {
    this.#ui = ui;
  }

  /** @param {HTMLElement} root */
  listen(root) {
    for (const type of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) root.addEventListener(type, this);
    root.addEventListener("click", this, { capture: true });
  }

  /** @param {Event} event */
  handleEvent(event) {
    if (event.type === "click") return this.#click(event);
    const pointer = /** @type {PointerEvent} */ (event);
    if (event.type === "pointerdown") this.#begin(pointer);
    else if (pointer.pointerId !== this.#touched?.id) return;
    else if (event.type === "pointermove") this.#move(this.#touched, pointer);
    else this.#end(this.#touched, event.type === "pointerup" ? pointer.clientX - this.#touched.x : 0);
  }

  /** @param {Event} event */
  #click(event) {
    if (this.#swiped) event.stopPropagation();
    if (this.#swiped) event.preventDefault();
    this.#swiped = false;
  }

  /** @param {PointerEvent} event */
  #begin({ target, pointerId: id, pointerType, isPrimary, clientX: x, clientY: y }) {
    this.#swiped = false;
    if (this.#touched) this.#end(this.#touched, 0); // a second finger
    const row = /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest("[data-row]"));
    const task = row && this.#ui.task(Number(row.dataset.row));
    if (!task || !isPrimary || pointerType !== "touch" || task.status === "deleted" || this.#ui.selection.active) return;
    if (row.querySelector(".task-form")) return;
    this.#touched = { id, row, task, x, y, swiping: false };
  }

  /** @param {Touched} touched @param {PointerEvent} event */
  #move(touched, { clientX, clientY }) {
    const [x, y] = [clientX - touched.x, clientY - touched.y];
    if (!touched.swiping && Math.max(Math.abs(x), Math.abs(y)) < BEGINS) return;
    if (!touched.swiping && Math.abs(y) > Math.abs(x)) return void (this.#touched = null);
    if (!touched.swiping) touched.row.setPointerCapture(touched.id);
    touched.swiping = true;
    const { today } = this.#ui;
    const pending = touched.task.status === "pending";
    const offset = pending ? x : Math.max(0, x);
    touched.row.dataset.swipe = x > 0 ? "right" : "left";
    touched.row.dataset.does = x < 0 ? dayWords(plusDays(today, 1), today) : pending ? LIST.complete : LIST.reopen;
    touched.row.toggleAttribute("data-acts", Math.abs(offset) >= ACTS);
    touched.row.style.translate = `${offset}px`;
  }

  /** @param {Touched} touched @param {number} x how far it was moved to the right */
  #end({ row, task, swiping }, x) {
    this.#touched = null;
    if (!swiping) return;
    this.#swiped = x !== 0;
    const from = row.style.translate;
    row.style.translate = "";
    delete row.dataset.swipe;
    delete row.dataset.does;
    row.removeAttribute("data-acts");
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) row.animate({ translate: [from, "0px"] }, { duration: BACK, easing: "ease-out" });
    const { actions, today } = this.#ui;
    if (x >= ACTS) void actions.tick([task], task.status === "pending");
    else if (x <= -ACTS && task.status === "pending") void actions.move([task], { day: plusDays(today, 1), time: null });
  }
}

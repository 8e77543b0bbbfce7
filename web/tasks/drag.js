// @ts-check
import { plusDays } from "../words.js";
/** @import {Task} from "./types" */
/** @import {Ui} from "./ui.js" */

const TARGETS = "section[data-day], [data-view=today], [data-view=upcoming]";

/** Drags tasks onto a day of the list, or in the side bar onto today or onto the coming days, which is tomorrow. */
export class Dragging {
  /** @type {Task[]} */
  #tasks = [];
  /** @type {HTMLElement | null} */
  #over = null;
  #ui;

  /** @param {Ui} ui */
  constructor(ui) {
    this.#ui = ui;
  }

  /** @param {Event} event */
  handleEvent(event) {
    const drag = /** @type {DragEvent} */ (event);
    const target = /** @type {Element} */ (drag.target);
    if (drag.type === "dragstart") this.#begin(drag, target);
    else if (drag.type === "dragend") this.#end();
    else if (this.#tasks.length > 0) this.#hover(drag, target);
  }

  /** @param {DragEvent} event @param {Element} target */
  #begin(event, target) {
    const task = target instanceof Element && this.#ui.taskOf(target); // a dragged text is a node of its own
    if (!task || !event.dataTransfer) return;
    this.#tasks = this.#ui.selection.with(task);
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", this.#tasks.map(({ title }) => title).join("\n"));
  }

  /** @param {DragEvent} event @param {Element} target */
  #hover(event, target) {
    const place = /** @type {HTMLElement | null} */ (target.closest(TARGETS));
    this.#mark(place);
    if (!place) return;
    event.preventDefault(); // allows dropping
    if (event.type !== "drop") return;
    const { today } = this.#ui;
    const day = place.dataset.day ?? (place.dataset.view === "upcoming" ? plusDays(today, 1) : today);
    const tasks = this.#tasks.filter(({ due }) => due !== day);
    this.#end();
    if (tasks.length > 0) void this.#ui.actions.move(tasks, { day, time: null });
  }

  /** @param {HTMLElement | null} place */
  #mark(place) {
    if (place === this.#over) return;
    this.#over?.removeAttribute("data-over");
    place?.setAttribute("data-over", "");
    this.#over = place;
  }

  #end() {
    this.#mark(null);
    this.#tasks = [];
  }
}

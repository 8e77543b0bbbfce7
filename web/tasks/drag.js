// @ts-check
/** @import {Task} from "./types" */
/** @import {Ui} from "./ui.js" */

const TARGETS = "section[data-day], [data-view=today]";

/** Drags tasks onto a day of the list or onto the view of today. */
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
    const row = /** @type {HTMLElement | null} */ (target.closest?.("[data-row]"));
    const task = row && this.#ui.task(Number(row.dataset.row));
    if (!task || !event.dataTransfer) return;
    this.#tasks = this.#ui.affectedBy(task);
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
    const day = place.dataset.day ?? this.#ui.today;
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

// @ts-check
/** @import {Task} from "./types" */

/** @typedef {{id: number, part: string}} Part */

const PRECISE = matchMedia("(pointer: fine)"); // where focus opens no on-screen keyboard

/** Remembers the focus before a drawing and restores it, or moves it to a neighbour. */
export class Focus {
  /** @type {Element | null} */
  #element;
  #part = "";
  #id = 0;
  #index = -1;
  #root;

  /** @param {HTMLElement} root @param {Task[]} tasks as they are drawn now @param {Part | null} wanted where it is to go instead */
  constructor(root, tasks, wanted) {
    this.#root = root;
    this.wanted = wanted;
    this.#element = root.contains(document.activeElement) ? document.activeElement : null;
    const element = /** @type {HTMLElement | null} */ (this.#element);
    this.#part = element?.dataset.part ?? "open";
    this.#id = Number(/** @type {HTMLElement | null | undefined} */ (element?.closest("[data-row]"))?.dataset.row ?? 0);
    this.#index = this.#id ? (drawn.get(root)?.findIndex(({ id }) => id === this.#id) ?? -1) : -1;
    drawn.set(root, tasks);
  }

  /** @param {Task[]} tasks as they are drawn since @param {boolean} scrolled whether the row may have been scrolled away */
  restore(tasks, scrolled) {
    if (this.wanted) return this.#focus(this.wanted.id, this.wanted.part);
    const element = this.#element;
    if (!element || (element.isConnected && document.activeElement === element)) return;
    if (!this.#id) return; // the dialog has closed
    if (this.#focus(this.#id, this.#part)) return;
    const other = scrolled ? undefined : tasks[Math.min(this.#index, tasks.length - 1)];
    if (other && this.#focus(other.id, this.#part)) return;
    const place = this.#root.querySelector(scrolled || !PRECISE.matches ? ".rows" : "[data-part=new], .rows");
    /** @type {HTMLElement | null} */ (place)?.focus({ preventScroll: true });
  }

  /** @param {number} id @param {string} part */
  #focus(id, part) {
    const row = this.#root.querySelector(`[data-row="${id}"]`);
    const target = row?.querySelector(`[data-part="${part}"]`) ?? row?.querySelector("[data-part=open], [data-part=title]");
    const field = /** @type {HTMLInputElement | null} */ (target ?? null);
    field?.focus({ preventScroll: true });
    if (field?.localName === "textarea") field.setSelectionRange(field.value.length, field.value.length);
    return field !== null;
  }
}

/** Returns the drawn tasks, in order. @type {WeakMap<HTMLElement, Task[]>} */
const drawn = new WeakMap();

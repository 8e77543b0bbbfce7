// @ts-check
/** @import {Task} from "./types" */

/** @typedef {{id: number, part: string}} Part */
/** The selected text of a field. @typedef {[start: number, end: number, direction: "forward" | "backward" | "none"]} Caret */

const PRECISE = matchMedia("(pointer: fine)"); // where focus opens no on-screen keyboard

/**
 * Remembers the focus before a drawing and restores it. It moves to a neighbour only from the row of a task that the user
 * has ticked, moved or deleted, so that no key acts on another task than the one the user sees.
 */
export class Focus {
  /** @type {Element | null} */
  #element;
  #part = "";
  #id = 0;
  #index = -1;
  /** @type {Caret | null} */
  #caret;
  #root;
  #leaving;

  /** @param {HTMLElement} root @param {Task[]} tasks as they are drawn now @param {Part | null} wanted where it is to go instead @param {Set<number>} leaving tasks that the user removes from the list */
  constructor(root, tasks, wanted, leaving) {
    this.#root = root;
    this.#leaving = leaving;
    this.wanted = wanted;
    this.#element = root.contains(document.activeElement) ? document.activeElement : null;
    const element = /** @type {HTMLElement | null} */ (this.#element);
    this.#part = element?.dataset.part ?? "open";
    this.#caret = caretOf(element);
    this.#id = Number(/** @type {HTMLElement | null | undefined} */ (element?.closest("[data-row]"))?.dataset.row ?? 0);
    this.#index = this.#id ? (drawn.get(root)?.findIndex(({ id }) => id === this.#id) ?? -1) : -1;
    drawn.set(root, tasks);
  }

  /** @param {Task[]} tasks as they are drawn since @param {boolean} scrolled whether the row may have been scrolled away */
  restore(tasks, scrolled) {
    if (this.wanted && this.#focus(this.wanted.id, this.wanted.part)) return;
    const element = this.#element;
    if (!element || (element.isConnected && document.activeElement === element)) return;
    if (!this.#id) return; // the dialog has closed
    if (this.#focus(this.#id, this.#part, this.#caret)) return;
    const follows = !scrolled && this.#leaving.has(this.#id);
    const other = follows ? tasks[Math.min(this.#index, tasks.length - 1)] : undefined;
    if (other && this.#focus(other.id, this.#part)) return;
    const place = this.#root.querySelector(follows && PRECISE.matches ? "[data-part=new], .rows" : ".rows");
    /** @type {HTMLElement | null} */ (place)?.focus({ preventScroll: true });
  }

  /** @param {number} id @param {string} part @param {Caret | null} [caret] */
  #focus(id, part, caret) {
    const row = this.#root.querySelector(`[data-row="${id}"]`);
    const target = row?.querySelector(`[data-part="${part}"]`) ?? row?.querySelector("[data-part=open], [data-part=title]");
    const field = /** @type {HTMLInputElement | null} */ (target ?? null);
    field?.focus({ preventScroll: true });
    if (caret && caretOf(field)) field?.setSelectionRange(...caret);
    else if (field?.localName === "textarea") field.setSelectionRange(field.value.length, field.value.length);
    return field !== null;
  }
}

/** Returns the selected text of a field; null if it has none, as buttons and dates. @param {Element | null} element @returns {Caret | null} */
function caretOf(element) {
  const { selectionStart = null, selectionEnd, selectionDirection } = /** @type {Partial<HTMLInputElement>} */ (element ?? {});
  return selectionStart === null ? null : [selectionStart, selectionEnd ?? selectionStart, selectionDirection ?? "none"];
}

/** Returns the drawn tasks, in order. @type {WeakMap<HTMLElement, Task[]>} */
const drawn = new WeakMap();

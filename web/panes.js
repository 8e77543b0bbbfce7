// @ts-check
import { storage } from "./chat/storage.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";

/**
 * What the page uses of the list of tasks.
 * @typedef {HTMLElement & {options: {fetch: typeof fetch, agents?: boolean}, refresh: () => void, show: (taskId: number) => void, unselect: () => void}} TaskList
 */
/** @typedef {"tasks" | "chat"} Pane */

const LIST = "todo-tasks";
const SHOWN = "todo.pane";
const SIDE_BY_SIDE = matchMedia("(min-width: 900px)"); // as in style.css
/** @type {readonly Pane[]} */
const PANES = ["tasks", "chat"];

/** The list and the chat, side by side, or in tabs on a small screen. */
export class Panes {
  /** Null if the page has no list. @type {TaskList | null} */
  list = null;
  #tabs;
  #panes;

  /** @param {HTMLElement} tabs where they are to be @param {Record<Pane, HTMLElement>} panes */
  constructor(tabs, panes) {
    this.#tabs = tabs;
    this.#panes = panes;
    SIDE_BY_SIDE.addEventListener("change", () => this.#draw());
    this.#draw();
  }

  /** Shows a new list, if the page has one. @param {typeof fetch} send @param {boolean} agents whether they can do tasks */
  openList(send, agents) {
    this.closeList();
    if (!customElements.get(LIST)) return;
    this.list = /** @type {TaskList} */ (document.createElement(LIST));
    this.list.setAttribute("role", "region");
    this.list.setAttribute("aria-label", TEXTS.tasks);
    this.list.options = { fetch: send, agents };
    this.#panes.tasks.replaceChildren(this.list);
    this.#draw();
  }

  closeList() {
    this.list = null;
    this.#panes.tasks.replaceChildren();
    this.#draw();
  }

  /** Selects the tab on a small screen. @param {Pane} pane */
  show(pane) {
    storage.set(SHOWN, pane);
    this.#draw();
  }

  /** @returns {Pane} */
  get #shown() {
    return storage.get(SHOWN) === "chat" ? "chat" : "tasks";
  }

  #draw() {
    const tabbed = this.list !== null && !SIDE_BY_SIDE.matches;
    const seen = (/** @type {Pane} */ pane) => (tabbed ? pane === this.#shown : pane === "chat" || this.list !== null);
    for (const pane of PANES) {
      const place = this.#panes[pane];
      place.hidden = pane === "tasks" && !this.list;
      place.classList.toggle("away", !seen(pane)); // not `hidden`, which would reset the scroll position
      if (tabbed) place.setAttribute("role", "tabpanel");
      else place.removeAttribute("role");
      if (tabbed) place.setAttribute("aria-labelledby", `tab-${pane}`);
      else place.removeAttribute("aria-labelledby");
    }
    document.body.dataset.panes = PANES.filter(seen).join(" ");
    render(tabbed ? this.#tabList() : nothing, this.#tabs);
  }

  #tabList() {
    return html`
      <div role="tablist" aria-label=${TEXTS.tabs} @keydown=${this.#keydown}>
        ${PANES.map((pane) => {
          const selected = pane === this.#shown;
          return html`<button
            type="button"
            role="tab"
            id="tab-${pane}"
            aria-controls=${pane}
            aria-selected=${selected}
            tabindex=${selected ? 0 : -1}
            @click=${() => this.show(pane)}
          >
            ${TEXTS[pane]}
          </button>`;
        })}
      </div>
    `;
  }

  /** With two tabs, every arrow key selects the other one. @param {KeyboardEvent} event */
  #keydown = (event) => {
    const other = this.#shown === "tasks" ? "chat" : "tasks";
    /** @type {Record<string, Pane>} */
    const goes = { ArrowLeft: other, ArrowRight: other, Home: "tasks", End: "chat" };
    const pane = goes[event.key];
    if (!pane) return;
    event.preventDefault();
    this.show(pane);
    document.getElementById(`tab-${pane}`)?.focus();
  };
}

// @ts-check
import { link } from "../address.js";
import { icon } from "../icons.js";
import { LastSeen } from "../database.js";
import { ariaKeys, withKey } from "../shortcuts.js";
import { LIST, TEXTS } from "../texts.js";
import { html, nothing, render } from "../vendor/lit-html/lit-html.js";
import { counted, removeBidiControls } from "../words.js";
import { byId } from "./elements.js";
/** @import {Thread} from "../chat/types" */
/** @import {Icon} from "../icons.js" */
/** @import {Command} from "../shortcuts.js" */
/** @import {Panes} from "./panes.js" */
/** @import {TodoTasks} from "../tasks/element.js" */

const MAX_LABELS = 8;
const MAX_CONVERSATIONS = 8;
const PAUSE = 300; // ms between two requests for counts
const DRAWER = matchMedia("(max-width: 68.74em)"); // as in shell.css

/** The names of what was seen last. */
const COUNTS = "counts";
const CONVERSATIONS = "conversations";

/** What `GET /tasks/counts` returns. @typedef {{today: number, upcoming: number, all: number, labels: {label: string, count: number}[]}} Counts */

/** The views, labels and newest conversations, beside the list or in a drawer. */
export class SideBar {
  /** @type {Counts | null} */
  #counts = null;
  /** @type {readonly Thread[]} */
  #threads = [];
  /** When conversations with the same title began, by their ids. @type {ReadonlyMap<string, string>} */
  #times = new Map();
  /** What the user saw last. @type {LastSeen | null} */
  #lastSeen = null;
  /** The open conversation. @type {string | null} */
  #conversation = null;
  #allLabels = false;
  /** @type {TodoTasks | null} */
  #list = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #loading;
  #element = byId("side");
  #opener = byId("open-side");
  #fetch;
  #showHistory;

  /** @param {typeof fetch} send @param {() => void} showHistory shows all conversations */
  constructor(send, showHistory) {
    this.#fetch = send;
    this.#showHistory = showHistory;
    this.#element.addEventListener("beforetoggle", (event) => this.#keepFocus(/** @type {ToggleEvent} */ (event).newState === "open"));
    this.#element.addEventListener("toggle", (event) => this.#toggled(/** @type {ToggleEvent} */ (event).newState === "open"));
    this.#element.addEventListener("click", ({ target }) => /** @type {Element} */ (target).closest("a") && this.close());
    DRAWER.addEventListener("change", () => this.close());
    // A dialog that was opened from the drawer closes it, so the focus has no element to go back to.
    document.addEventListener("close", () => setTimeout(() => this.#focusOpener()), true); // after it is removed
  }

  /** Follows the list of the signed-in user; without one, forgets what is shown. @param {TodoTasks | null} list @param {string | null} user */
  follow(list, user) {
    this.#list = list;
    this.#counts = null;
    this.#threads = [];
    this.#times = new Map();
    void this.#lastSeen?.close();
    this.#lastSeen = list && user !== null ? new LastSeen(user) : null;
    void this.#showEarlier(this.#lastSeen);
    clearTimeout(this.#loading);
    for (const event of ["todo-changed", "todo-place"]) list?.addEventListener(event, () => this.#changed());
    if (list) void this.#load();
    this.#draw();
  }

  /** Shows what was seen last, until it is loaded. @param {LastSeen | null} lastSeen */
  async #showEarlier(lastSeen) {
    const counts = await lastSeen?.get(COUNTS);
    const conversations = await lastSeen?.get(CONVERSATIONS);
    if (lastSeen !== this.#lastSeen) return; // another user has signed in meanwhile
    this.#counts ??= counts ?? null;
    if (this.#threads.length === 0 && conversations) [this.#threads, this.#times] = [conversations.threads, new Map(conversations.times)];
    this.#draw();
  }

  /** @param {readonly Thread[]} threads the newest first @param {ReadonlyMap<string, string>} times of those with the same title */
  showConversations(threads, times) {
    this.#threads = threads.slice(0, MAX_CONVERSATIONS);
    this.#times = times;
    void this.#lastSeen?.set(CONVERSATIONS, { threads: this.#threads.map(({ id, title }) => ({ id, title })), times: [...times] });
    this.#draw();
  }

  /** @param {string | null} id */
  set conversation(id) {
    this.#conversation = id;
    this.#draw();
  }

  close() {
    if (this.#element.matches(":popover-open")) this.#element.hidePopover();
  }

  /** Keeps the focus in the open drawer. @param {boolean} open */
  #keepFocus(open) {
    for (const element of OTHERS) element.inert = open;
  }

  /** @param {boolean} open */
  #toggled(open) {
    if (open) void this.#load();
    if (open) /** @type {HTMLElement | null} */ (this.#element.querySelector("[aria-current], a"))?.focus();
    else this.#focusOpener();
  }

  /** Focuses what opens the drawer if nothing that can be seen has the focus. */
  #focusOpener() {
    if (document.activeElement?.matches("body, #side:not(:popover-open) *") && DRAWER.matches) this.#opener.focus();
  }

  #changed() {
    this.#draw();
    this.#loading ??= setTimeout(() => void this.#load(), PAUSE);
  }

  async #load() {
    clearTimeout(this.#loading);
    this.#loading = undefined;
    const list = this.#list;
    const response = await this.#fetch("tasks/counts", { cache: "no-store" }).catch(() => null);
    const counts = response?.ok ? await response.json().catch(() => null) : null;
    if (!counts || list !== this.#list) return; // asked again after the next change
    this.#counts = counts;
    void this.#lastSeen?.set(COUNTS, counts);
    this.#draw();
  }

  #draw() {
    const label = this.#label;
    const view = label ? undefined : this.#list?.place?.view;
    for (const entry of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-view]"))) {
      if (entry.dataset.view === view) entry.setAttribute("aria-current", "page");
      else entry.removeAttribute("aria-current");
      const count = entry.querySelector(".count");
      if (count) count.textContent = this.#countOf(entry.dataset.view);
    }
    render(this.#labels(), byId("labels"));
    render(this.#recent(), byId("recent"));
  }

  /** The label whose tasks the list shows. */
  get #label() {
    const { view, filter } = this.#list?.place ?? {};
    return view === "all" ? filter?.label : undefined;
  }

  /** @param {string} [view] */
  #countOf(view) {
    if (!this.#counts || !view) return "";
    const { today, upcoming, all } = this.#counts;
    const count = new Map([["today", today], ["upcoming", upcoming], ["all", all]]).get(view);
    return count ? counted(count) : "";
  }

  #labels() {
    const labels = this.#counts?.labels ?? [];
    if (labels.length === 0) return nothing;
    const shown = this.#allLabels ? labels : labels.slice(0, MAX_LABELS);
    const toggle = () => {
      this.#allLabels = !this.#allLabels;
      this.#draw();
    };
    return html`
      <h2>${TEXTS.labels}</h2>
      <ul>
        ${shown.map(({ label, count }) => html`<li>${entry(link({ view: "all", filter: { label } }), "tag", label, label === this.#label, counted(count))}</li>`)}
      </ul>
      ${labels.length > MAX_LABELS
        ? html`<button type="button" class="text-button" @click=${toggle}>${this.#allLabels ? TEXTS.fewerLabels : TEXTS.moreLabels}</button>`
        : nothing}
    `;
  }

  #recent() {
    if (this.#threads.length === 0) return nothing;
    const all = () => {
      this.close();
      this.#showHistory();
    };
    return html`
      <h2>${TEXTS.history.title}</h2>
      <ul>
        ${this.#threads.map(({ id, title }) => html`<li>${entry(link({ conversation: id }), "chat", title || TEXTS.history.untitled, id === this.#conversation, this.#times.get(id))}</li>`)}
      </ul>
      <button type="button" class="text-button" @click=${all}>${TEXTS.allConversations}</button>
    `;
  }
}

/** What takes no focus while the drawer is open. */
const OTHERS = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("body > :not(#side, #said, dialog)"));

/** @param {string} address @param {Icon} drawn @param {string} name @param {boolean} here @param {string} [count] or time */
const entry = (address, drawn, name, here, count) => html`
  <a class="entry-link" href=${address} aria-current=${here ? "page" : nothing}>
    ${icon(drawn)}<span class="name" dir="auto" translate="no" title=${removeBidiControls(name)}>${name}</span>${count ? html`<span class="count">${count}</span>` : nothing}
  </a>
`;

/** The search field and the button that adds a task: both belong to the list. */
export class Header {
  #field = /** @type {HTMLInputElement} */ (byId("search").querySelector("input"));
  #panes;

  /** @param {Panes} panes */
  constructor(panes) {
    this.#panes = panes;
    byId("search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#field.blur(); // closes an on-screen keyboard
    });
    this.#field.addEventListener("input", () => panes.list?.search(this.#field.value));
    byId("add").addEventListener("click", () => this.add());
    this.showKeys();
    document.querySelector("#bottom [data-search]")?.addEventListener("click", () => this.search());
  }

  /** Shows the keys of the field and of the button. */
  showKeys() {
    setKeys(this.#field, TEXTS.search, "search");
    setKeys(byId("add"), LIST.add, "add");
  }

  /** Shows in the field what the list is filtered by. @param {string} [query] @param {boolean} [typing] also while the user may be typing in it */
  showQuery(query = this.#panes.list?.place.filter.query ?? "", typing = false) {
    if (typing || document.activeElement !== this.#field) this.#field.value = query;
  }

  add() {
    this.#panes.show("tasks");
    this.#panes.list?.focusAdding();
  }

  search() {
    this.#panes.show("tasks");
    this.#field.focus();
    this.#field.select();
  }
}

/** @param {HTMLElement} element @param {string} label @param {Command} command */
function setKeys(element, label, command) {
  element.title = withKey(label, command);
  const keys = ariaKeys(command);
  if (keys) element.setAttribute("aria-keyshortcuts", keys);
  else element.removeAttribute("aria-keyshortcuts");
}

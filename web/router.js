// @ts-check
import { link, parse, pathBelowBase, WIDGET } from "./address.js";
/** @import {Address} from "./address.js" */
/** @import {Pane} from "./shell/panes.js" */
/** @import {ListPlace} from "./tasks/types" */

const parameters = new URLSearchParams(location.search);

/** What a shortcut of the manifest opens beside the list: the field for a task, or the assistant. */
export const opens = parameters.get("open");

/**
 * What another app has shared: a title, a text and an address, some of which repeat others. A link of any website can have it,
 * too, so it is stored nowhere: the user sees it in the field for a task.
 */
export const shared = [...new Set(["title", "text", "url"].map((name) => parameters.get(name)?.replace(/\s+/g, " ").trim()))].filter(Boolean).join(" ");
if (shared || opens) history.replaceState(null, "", document.baseURI); // a reload does it not again

/** The fragment of the address, which may have a one-time code: it does not stay in the address and in the history. */
export const fragment = new URLSearchParams(location.hash.slice(1));
if (location.hash) history.replaceState(history.state, "", location.pathname + location.search);

/**
 * Where the user is: in the list, in a task, in a conversation. The address names what was `opened` last; `above` says that
 * the entry before is the list without the task, `searched` that the entry before the search is the list without it. `pane` is
 * what a phone shows, and `beneath` the list that the assistant covers there, so many entries before.
 * @typedef {ListPlace & {conversation: string | null, opened: "view" | "task" | "conversation", pane: Pane, above?: boolean, searched?: boolean, beneath?: {place: Place, steps: number} | null}} Place
 */

const NO_FILTER = /** @type {ListPlace["filter"]} */ ({ query: "", label: "", priority: "" });
const PHONE = matchMedia("(max-width: 43.74em)"); // as in shell.css
const MAX_TRAVERSAL = 1000; // ms that the browser takes to go back

/**
 * Keeps the place in the history of the browser. Its event `go` says that the page is to show `place`, after a link, Back or
 * Forward; `was` in it is the place before.
 */
export class Router extends EventTarget {
  /** @type {Place} */
  place;
  /** The widget's page keeps its address. */
  #fixed = pathBelowBase(location.pathname) === WIDGET;
  /** Resolves when the history is as it was last asked to be. */
  #written = Promise.resolve();
  #returning = false;
  /** Whose entries are shown; null: nobody's. @type {string | null} */
  #user;
  /** Whether a phone shows an entry again, for example after a reload. */
  restored = PHONE.matches && history.state?.place?.pane !== undefined;

  /** @param {string | null} conversation the last one, which is open where the address names none @param {string | null} user who was signed in last */
  constructor(conversation, user) {
    super();
    this.#user = user;
    this.place = this.#read({ view: null, filter: NO_FILTER, task: null, conversation, opened: "view", pane: "tasks" });
    if (!this.#fixed && parse(location) === null) return; // the page shows nothing here, and its links load another one
    this.#write("replaceState", this.place);
    addEventListener("popstate", () => this.#returning || this.#traversed());
    document.addEventListener("click", (event) => this.#clicked(event));
  }

  /** Shows what a link names. @param {Address} address */
  go(address) {
    const was = this.place;
    const place = { ...placeOf(address, was), above: false };
    const moved = addressOf(place) !== addressOf(was) || (PHONE.matches && place.pane !== was.pane);
    if (moved) this.#write("pushState", { ...place, beneath: beneath(was, place.pane) });
    this.#go(place, was);
  }

  /** Notes where the user went in the list. @param {ListPlace} list @param {{replace?: boolean}} [how] `replace`: it is what `go` asked for */
  listWent(list, { replace = false } = {}) {
    const was = this.place;
    if (isSame(list, was)) return;
    const moved = !isSame({ ...list, task: null }, { ...was, task: null });
    const closed = was.task !== null && list.task === null;
    const swapped = was.task !== null && list.task !== null;
    const typed = isSame({ ...list, filter: { ...list.filter, query: "" } }, { ...was, filter: { ...was.filter, query: "" } });
    const [began, ended] = [was, list].map(({ filter }) => typed && !replace && !filter.query);
    const searched = began ? was.opened === "view" : !ended && (typed || !moved) && was.searched;
    const opened = openedLast(was, list, replace);
    const pane = opened === was.opened ? was.pane : "tasks";
    const place = { ...was, ...list, opened, pane, above: false, searched, beneath: pane === "chat" ? was.beneath : null };
    if ((closed && !moved && was.above) || (ended && was.searched)) return this.#return(place, 1);
    if (replace || (typed && !began) || swapped || (closed && !moved)) return this.#write("replaceState", { ...place, above: swapped && was.above });
    this.#write("pushState", { ...place, above: !moved && was.opened === "view" });
  }

  /** Notes which conversation is open. @param {string | null} conversation null: a new one @param {{replace?: boolean}} [how] no entry of its own */
  chatWent(conversation, { replace = false } = {}) {
    if (conversation === this.place.conversation) return;
    const was = this.place;
    const opened = conversation !== null ? "conversation" : was.task !== null ? "task" : "view";
    /** @type {Place} */
    const place = { ...was, conversation, opened, pane: conversation === null || PHONE.matches ? was.pane : "chat", above: false };
    if (replace || (was.beneath && was.conversation === null)) return this.#write("replaceState", place);
    this.#write("pushState", { ...place, beneath: beneath(was, place.pane) });
  }

  /** Notes what a phone shows: Back from the assistant leads to the list that it covers. @param {Pane} pane @param {{replace?: boolean}} [how] no entry of its own */
  paneWent(pane, { replace = false } = {}) {
    const was = this.place;
    if (pane === was.pane || !PHONE.matches) return;
    if (pane === "chat" && !replace) this.#write("pushState", { ...was, pane, above: false, searched: false, beneath: beneath(was, pane) });
    else if (was.beneath) this.#return({ ...was.beneath.place, conversation: was.conversation }, was.beneath.steps);
    else this.#write("replaceState", { ...was, pane });
  }

  /** Notes who is signed in, and forgets the place of another user; resolves once the address bar has, too. @param {string | null} user */
  enter(user) {
    const was = this.#user;
    this.#user = user;
    if (was === null) this.#write("replaceState", this.place); // a link that was opened before is of this user from now on
    else if (was !== user) this.#write("replaceState", { ...today({ ...this.place, conversation: null }), pane: this.place.pane });
    return this.#written;
  }

  /** Shows the entry of the history. The list that the assistant has covered is shown beside the same conversation. */
  #traversed() {
    const was = this.place;
    const place = this.#read(was);
    const uncovers = JSON.stringify(place) === JSON.stringify(was.beneath?.place);
    if (uncovers) this.#write("replaceState", { ...place, conversation: was.conversation });
    else if (this.#isOfAnother) this.#write("replaceState", place);
    this.#go(uncovers ? this.place : place, was);
  }

  /** @param {Place} place @param {Place} was */
  #go(place, was) {
    this.place = place;
    this.dispatchEvent(new CustomEvent("go", { detail: { was } }));
  }

  /** Whether the history's entry was made by another user. */
  get #isOfAnother() {
    const user = history.state?.user ?? null;
    return user !== null && user !== this.#user;
  }

  /** Returns the place of the history's entry. @param {Place} here of which an address changes a part @returns {Place} */
  #read(here) {
    if (this.#isOfAnother) return today(here);
    const state = /** @type {{place?: Place} | null} */ (history.state);
    return state?.place ?? placeOf((!this.#fixed && parse(location)) || {}, here);
  }

  /** @param {"pushState" | "replaceState"} method @param {Place} place */
  #write(method, place) {
    const user = this.#user;
    this.place = place;
    this.#written = this.#written.then(() => {
      const named = this.#fixed || isNamed(place);
      history[method]({ place, user }, "", named ? undefined : new URL(addressOf(place), document.baseURI));
    });
  }

  /** Goes back to the list's entry, and gives it this place. @param {Place} place @param {number} steps */
  #return(place, steps) {
    this.#written = this.#written.then(async () => {
      this.#returning = true;
      await new Promise((resolve) => {
        addEventListener("popstate", resolve, { once: true });
        setTimeout(resolve, MAX_TRAVERSAL);
        history.go(-steps);
      });
      this.#returning = false;
    });
    this.#write("replaceState", place);
  }

  /** Follows a link to an address of the page; what a browser does with other keys and buttons, it does. @param {MouseEvent} event */
  #clicked(event) {
    if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const anchor = /** @type {HTMLAnchorElement | null} */ (/** @type {Element} */ (event.target).closest("a[href]"));
    if (!anchor || anchor.origin !== location.origin || anchor.target || anchor.hasAttribute("download") || anchor.hash) return;
    const leaves = this.#fixed && pathBelowBase(anchor.pathname) === ""; // the widget's page leads to the built-in chat
    const address = leaves ? null : parse(anchor);
    if (!address) return;
    event.preventDefault();
    this.go(address);
  }
}

/** @param {Address} address @param {Place} here what it does not name stays @returns {Place} */
function placeOf({ view, filter, task, conversation }, here) {
  if (task !== undefined) return { ...here, task, opened: "task", pane: "tasks", beneath: null };
  if (conversation !== undefined) return { ...here, conversation, opened: "conversation", pane: "chat" };
  if (view === undefined) return here;
  return { ...here, view, filter: { ...NO_FILTER, ...filter }, task: null, opened: "view", pane: "tasks", beneath: null };
}

/** @param {Place} here @returns {Place} */
const today = (here) => placeOf({ view: "today" }, here);

/** Returns the list that the assistant covers on a phone after one more step. @param {Place} was @param {Pane} pane @returns {Place["beneath"]} */
function beneath(was, pane) {
  if (!PHONE.matches || pane !== "chat") return null;
  if (was.pane !== "chat") return { place: was, steps: 1 };
  return was.beneath && { ...was.beneath, steps: was.beneath.steps + 1 };
}

/** @param {Place} place */
function addressOf({ view, filter, task, conversation, opened }) {
  if (opened === "task" && task !== null) return link({ task });
  if (opened === "conversation" && conversation !== null) return link({ conversation });
  return link({ view: view ?? "today", filter });
}

/** Whether the address bar names the place already, perhaps in another way: `/` is Today. @param {Place} place */
function isNamed(place) {
  const address = parse(location);
  return address !== null && addressOf(placeOf(address, place)) === addressOf(place);
}

/** @param {Place} was @param {ListPlace} list @param {boolean} replace @returns {Place["opened"]} */
function openedLast(was, list, replace) {
  if (list.task !== null && (was.opened === "task" || list.task !== was.task)) return "task";
  if (replace || (was.task !== null && list.task === null)) return was.opened === "task" ? "view" : was.opened;
  return "view";
}

/** @param {ListPlace} one @param {ListPlace} other */
function isSame(one, other) {
  const text = ({ view, filter: { query, label, priority }, task } = one) => JSON.stringify([view ?? "today", query, label, priority, task]);
  return text(one) === text(other);
}

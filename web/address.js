// @ts-check
/** @import {Filter, View} from "./tasks/types" */

/**
 * What an address names: a view with a filter, a task, or a conversation (whether it exists or not).
 * @typedef {{view?: View, filter?: Partial<Filter>, task?: number, conversation?: string}} Address
 */

/** The page with OpenAI's widget, which keeps its address. Relative to `<base>`, like all addresses here. */
export const WIDGET = "widget";
/** @type {readonly string[]} */
const VIEWS = ["today", "upcoming", "all", "done", "deleted"];
const PRIORITIES = ["high", "medium", "low", "none"];
/** The parameters of an address and their fields of a filter. @type {readonly [string, keyof Filter][]} */
const PARAMETERS = [
  ["label", "label"],
  ["q", "query"],
  ["priority", "priority"],
];

/** Returns the path below `<base>`; null outside it. @param {string} pathname */
export function pathBelowBase(pathname) {
  const base = new URL(document.baseURI).pathname;
  return pathname.startsWith(base) ? pathname.slice(base.length) : null;
}

/** Returns what the address names; null if the page has nothing there. @param {{pathname: string, search: string}} location @returns {Address | null} */
export function parse({ pathname, search }) {
  const path = pathBelowBase(pathname);
  if (path === null) return null;
  const [, task] = /^t\/([1-9]\d{0,14})$/.exec(path) ?? [];
  if (task) return { task: Number(task) };
  const [, conversation] = /^c\/([^/]+)$/.exec(path) ?? [];
  if (conversation) return { conversation };
  if (path !== "" && !VIEWS.includes(path)) return null;
  return { view: /** @type {View} */ (path || "today"), filter: parseFilter(new URLSearchParams(search)) };
}

/** @param {URLSearchParams} parameters @returns {Filter} */
function parseFilter(parameters) {
  const priority = parameters.get("priority") ?? "";
  return {
    query: (parameters.get("q") ?? "").trim(),
    label: parameters.get("label") ?? "",
    priority: /** @type {Filter["priority"]} */ (PRIORITIES.includes(priority) ? priority : ""),
  };
}

/** Returns the address relative to `<base>`. @param {Address} address */
export function link({ view = "today", filter = {}, task, conversation }) {
  if (task !== undefined) return `t/${task}`;
  if (conversation !== undefined) return `c/${conversation}`;
  const parameters = PARAMETERS.flatMap(([name, field]) => (filter[field] ? [[name, filter[field]]] : []));
  return parameters.length > 0 ? `${view}?${new URLSearchParams(parameters)}` : view;
}

// @ts-check
import { fetchFromHere } from "./http.js";
import { fullDay } from "./words.js";
/** @import {Entity, Widgets} from "@openai/chatkit" */
/** @import {TaskPage} from "./tasks/types" */

/** Returns open tasks with these words for a mention; none if they cannot be loaded. @param {string} query @returns {Promise<Entity[]>} */
export async function tasksLike(query) {
  const params = new URLSearchParams({ view: "all", limit: "8", ...(query.trim() && { query }) });
  const response = await fetchFromHere(`/tasks?${params}`).catch(() => null);
  if (!response?.ok) return [];
  /** @type {TaskPage} */
  const { now, tasks } = await response.json();
  const dayOf = (/** @type {string | null} */ due) => (due ? fullDay(due, now.slice(0, 10)) : "");
  return tasks.map(({ id, title, due }) => ({ id: String(id), title, interactive: true, data: { due: dayOf(due) } }));
}

/** Returns the card of a mentioned task. @param {Entity} entity @returns {{preview: Widgets.BasicRoot}} */
export const preview = ({ title, data }) => ({
  preview: { type: "Basic", children: [{ type: "Text", value: title }, { type: "Caption", value: data?.due ?? "" }] },
});

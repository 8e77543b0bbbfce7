// @ts-check
import { fetchFromHere } from "./options.js";
import { fullDay } from "./words.js";
/** @import {Entity, Widgets} from "@openai/chatkit" */
/** @import {TaskPage} from "./tasks/types" */

/** The open tasks that have these words, to be named in a message; none where they cannot be read. @param {string} query @returns {Promise<Entity[]>} */
export async function tasksLike(query) {
  const asked = new URLSearchParams({ view: "all", limit: "8", ...(query.trim() && { query }) });
  const response = await fetchFromHere(`/tasks?${asked}`).catch(() => null);
  if (!response?.ok) return [];
  /** @type {TaskPage} */
  const { now, tasks } = await response.json();
  const dayOf = (/** @type {string | null} */ due) => (due ? fullDay(due, now.slice(0, 10)) : "");
  return tasks.map(({ id, title, due }) => ({ id: String(id), title, interactive: true, data: { due: dayOf(due) } }));
}

/** A task that was named, as a card. @param {Entity} entity @returns {{preview: Widgets.BasicRoot}} */
export const preview = ({ title, data }) => ({
  preview: { type: "Basic", children: [{ type: "Text", value: title }, { type: "Caption", value: data?.due ?? "" }] },
});

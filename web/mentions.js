// @ts-check
import { fetchFromHere } from "./options.js";
/** @import {Entity, Widgets} from "@openai/chatkit" */

/** The open tasks that have these words, to be named in a message; none where they cannot be read. @param {string} query @returns {Promise<Entity[]>} */
export async function tasksLike(query) {
  const asked = new URLSearchParams({ view: "all", limit: "8", ...(query.trim() && { query }) });
  const response = await fetchFromHere(`/tasks?${asked}`).catch(() => null);
  /** @type {{tasks: {id: number, title: string, due: string | null}[]}} */
  const { tasks } = response?.ok ? await response.json() : { tasks: [] };
  return tasks.map(({ id, title, due }) => ({ id: String(id), title, interactive: true, data: { due: due ? dayOf(due) : "" } }));
}

/** A task that was named, as a card. @param {Entity} entity @returns {{preview: Widgets.BasicRoot}} */
export const preview = ({ title, data }) => ({
  preview: { type: "Basic", children: [{ type: "Text", value: title }, { type: "Caption", value: data?.due ?? "" }] },
});

/** @param {string} due */
const dayOf = (due) => new Date(`${due}T12:00`).toLocaleDateString(undefined, { month: "short", day: "numeric" });

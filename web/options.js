// @ts-check
import { fetchFromHere } from "./http.js";
import { TEXTS } from "./texts.js";
import { fullDay } from "./words.js";
/** @import {ChatKitOptions, ColorScheme, Entity, Widgets} from "@openai/chatkit" */
/** @import {TaskPage} from "./tasks/types" */

/** @type {import("@openai/chatkit").StartScreenPrompt[]} */
const PROMPTS = [
  { icon: "plus", label: TEXTS.start.add, prompt: TEXTS.start.add },
  { icon: "notebook", label: TEXTS.start.list, prompt: TEXTS.start.list },
  { icon: "check-circle", label: TEXTS.start.done, prompt: TEXTS.start.done },
];
/** As --accent in style.css. */
const ACCENT = { light: "#0a6b5e", dark: "#5fcdb9" };

/**
 * The configuration that the server puts into the page.
 * @typedef {object} Config
 * @property {string | null} domainKey what OpenAI's widget is shown with, on its own page; null on every other
 * @property {boolean} hasWidget whether there is a page with OpenAI's widget
 * @property {boolean} missing whether this server has nothing at the address of the page
 * @property {"none" | "password" | "oidc" | "proxy" | "jwt"} auth
 * @property {boolean} linksDevices whether users can link their phones
 * @property {string | null} provider the name of the identity provider where users sign in
 * @property {{offline: boolean, name: string, writesCalls?: boolean}} model `writesCalls`: it cannot call tools itself
 * @property {number} messageChars
 * @property {Agents | null} agents null: there are none
 */

/** @typedef {{offered: boolean, confinement: string | null, fileBytes: number}} Agents */

/** @typedef {ChatKitOptions & {api: {url: string, fetch: typeof fetch}}} ChatOptions */

/**
 * Returns the options of the chat, for OpenAI's widget and the built-in one.
 * @param {string | null} thread the conversation to open
 * @param {{show: () => void, open: (taskId: number) => void}} list the list of tasks, beside the chat
 * @param {{domainKey: string, colorScheme: ColorScheme}} [widget] for OpenAI's widget alone
 * @returns {ChatOptions}
 */
export function chatOptions(thread, list, widget) {
  return {
    api: { url: new URL("chatkit", document.baseURI).href, domainKey: widget?.domainKey ?? "", fetch: fetchFromHere },
    theme: {
      radius: "round",
      ...(widget && {
        colorScheme: widget.colorScheme,
        color: { accent: { primary: ACCENT[widget.colorScheme], level: 1 } },
      }),
    },
    header: { enabled: true, rightAction: { icon: "grid", onClick: list.show } },
    history: { enabled: true, showDelete: true, showRename: true },
    initialThread: thread,
    startScreen: {
      greeting: TEXTS.start.greeting,
      prompts: PROMPTS,
    },
    composer: { placeholder: TEXTS.start.placeholder },
    threadItemActions: { feedback: true, retry: true },
    thread: { autoScroll: true },
    entities: {
      onTagSearch: findTasks,
      onClick: ({ id }) => list.open(Number(id)),
      onRequestPreview: async (entity) => preview(entity),
    },
    widgets: {
      onAction: async ({ type, payload }) => {
        if (type === "open_task") list.open(Number(payload?.task_id));
      },
    },
  };
}

/** Returns open tasks with these words for a mention; none if they cannot be loaded. @param {string} query @returns {Promise<Entity[]>} */
async function findTasks(query) {
  const params = new URLSearchParams({ view: "all", limit: "8", ...(query.trim() && { query }) });
  const response = await fetchFromHere(`tasks?${params}`).catch(() => null);
  if (!response?.ok) return [];
  /** @type {TaskPage} */
  const { now, tasks } = await response.json();
  const dayOf = (/** @type {string | null} */ due) => (due ? fullDay(due, now.slice(0, 10)) : "");
  return tasks.map(({ id, title, due }) => ({ id: String(id), title, interactive: true, data: { due: dayOf(due) } }));
}

/** Returns the card of a mentioned task. @param {Entity} entity @returns {{preview: Widgets.BasicRoot}} */
const preview = ({ title, data }) => ({
  preview: { type: "Basic", children: [{ type: "Text", value: title }, { type: "Caption", value: data?.due ?? "" }] },
});

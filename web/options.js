// @ts-check
import { fetchFromHere } from "./http.js";
import { TEXTS } from "./texts.js";
/** @import {ChatKitOptions, ColorScheme} from "@openai/chatkit" */

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
 * @property {"none" | "jwt"} auth
 * @property {{offline: boolean, name: string, writesCalls?: boolean}} model `writesCalls`: it cannot call tools itself
 * @property {number} messageChars
 * @property {Agents | null} agents null: there are none
 */

/** @typedef {{offered: boolean, confinement: string | null, fileBytes: number}} Agents */

/**
 * Returns the options of the chat, for OpenAI's widget and the built-in one.
 * @param {string | null} thread the conversation to open
 * @param {{show: () => void, open: (taskId: number) => void}} list the list of tasks, beside the chat
 * @param {{domainKey: string, colorScheme: ColorScheme}} [widget] for OpenAI's widget alone
 * @returns {ChatKitOptions}
 */
export function chatOptions(thread, list, widget) {
  return {
    api: { url: "/chatkit", domainKey: widget?.domainKey ?? "", fetch: fetchFromHere },
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
      onTagSearch: async (query) => (await import("./mentions.js")).tasksLike(query),
      onClick: ({ id }) => list.open(Number(id)),
      onRequestPreview: async (entity) => (await import("./mentions.js")).preview(entity),
    },
    widgets: {
      onAction: async ({ type, payload }) => {
        if (type === "open_task") list.open(Number(payload?.task_id));
      },
    },
  };
}

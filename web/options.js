// @ts-check
/** @import {ChatKitOptions, ColorScheme} from "@openai/chatkit" */

const PROMPTS = ["Add call the bank and buy milk", "What is on my list?", "What have I done?"];

/**
 * A request that says in which time zone the person is: `today` and `at six` are theirs. The server has its own zone for a browser that does not know.
 * @type {typeof fetch}
 */
export function fetchFromHere(input, init) {
  const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  if (timeZone) headers.set("X-Time-Zone", timeZone);
  return fetch(input, { ...init, headers });
}

/**
 * What the server says about itself in the page.
 * @typedef {object} Config
 * @property {{domainKey: string} | null} widget null: OpenAI's widget is not to be used
 * @property {"auto" | "built-in" | "openai"} ui
 * @property {"none" | "jwt"} auth
 * @property {{offline: boolean, name: string}} model
 * @property {number} messageChars
 */

/**
 * The options of the chat, the same for OpenAI's widget and for the built-in one.
 * @param {Config} config
 * @param {string | null} thread the conversation to open
 * @param {ColorScheme} [colorScheme] without one, the built-in chat follows the system
 * @returns {ChatKitOptions}
 */
export function chatOptions(config, thread, colorScheme) {
  return {
    api: { url: "/chatkit", domainKey: config.widget?.domainKey ?? "local-dev", fetch: fetchFromHere },
    theme: { radius: "round", ...(colorScheme && { colorScheme }) },
    header: { enabled: true },
    history: { enabled: true, showDelete: true, showRename: true },
    initialThread: thread,
    startScreen: {
      greeting: "What is there to do?",
      prompts: PROMPTS.map((prompt) => ({ label: prompt, prompt, icon: "check-circle" })),
    },
    composer: { placeholder: "Add, finish or ask about tasks" },
    threadItemActions: { feedback: true, retry: true },
    thread: { autoScroll: true },
  };
}

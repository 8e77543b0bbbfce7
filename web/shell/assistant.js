// @ts-check
import { WIDGET } from "../address.js";
import { loadModule } from "../http.js";
import { TEXTS } from "../texts.js";
import { byId } from "./elements.js";
/** @import {OpenAIChatKit} from "@openai/chatkit" */
/** @import {TodoChat} from "../chat/element.js" */
/** @import {Config} from "../options.js" */
/** @import {Unsaved} from "../unsaved.js" */
/** @import {Foot, ThemeChoice} from "./foot.js" */

/** @typedef {typeof import("../options.js").chatOptions} CreateOptions */
/** The conversation to open, and what its user has not saved. @typedef {{conversation: string | null, unsaved: Unsaved, takesFocus: boolean}} Opening */
/** What the page gives to the assistant: `follow` listens to the events of its element. @typedef {{theme: ThemeChoice, foot: Foot, list: Parameters<CreateOptions>[1], follow: (element: TodoChat | OpenAIChatKit) => void}} Page */

/** The pane of the assistant: our chat, or OpenAI's widget. */
export class Assistant {
  #place = byId("chat");
  /** Whether the user wants to write to it while it is loaded. */
  #awaited = false;
  #config;
  #page;

  /** @param {Config} config @param {Page} page */
  constructor(config, page) {
    this.#config = config;
    this.#page = page;
  }

  /** @returns {TodoChat | OpenAIChatKit | null} */
  get element() {
    return this.#place.querySelector("todo-chat, openai-chatkit");
  }

  /** Null while it is the widget. @returns {TodoChat | null} */
  get builtIn() {
    return this.#place.querySelector("todo-chat");
  }

  /** Focuses its field, or will do so once it is loaded. */
  focus() {
    this.#awaited = !this.element;
    void this.element?.focusComposer();
  }

  remove() {
    this.#place.replaceChildren();
  }

  /** Loads the assistant and shows it. @param {() => Opening | null} opening asked for once it is loaded; null: the user has signed out */
  async mount(opening) {
    const { chatOptions } = await this.#load();
    const opened = opening();
    if (!opened) return;
    const { domainKey } = this.#config;
    if (domainKey) await this.#mountWidget(domainKey, chatOptions, () => opening()?.conversation ?? null);
    else this.#mountBuiltIn(chatOptions, opened);
  }

  /** Loads the modules, again until the server can be reached. @returns {Promise<typeof import("../options.js")>} */
  #load() {
    return loadModule(
      async () => {
        if (!this.#config.domainKey) await import("../chat/element.js");
        return import("../options.js");
      },
      () => this.#showUnreachable(),
    );
  }

  #showUnreachable() {
    const reload = Object.assign(document.createElement("button"), { type: "button", className: "button", textContent: TEXTS.reload });
    reload.addEventListener("click", () => location.reload());
    showProblem(this.#place, TEXTS.chatUnreachable, reload);
  }

  /** @param {CreateOptions} chatOptions @param {Opening} opening */
  #mountBuiltIn(chatOptions, { conversation, unsaved, takesFocus }) {
    const { agents, hasWidget, messageChars } = this.#config;
    const { foot, list, follow } = this.#page;
    const element = /** @type {TodoChat} */ (document.createElement("todo-chat"));
    element.options = { ...chatOptions(conversation, list), messageChars, agents, unsaved, takesFocus: takesFocus || this.#awaited };
    this.#awaited = false;
    follow(element);
    this.#place.replaceChildren(element);
    foot.describe(TEXTS.widget.builtIn, hasWidget ? { text: TEXTS.widget.use, href: WIDGET } : undefined);
  }

  /** Mounts OpenAI's widget, whose script comes from another server. @param {string} domainKey @param {CreateOptions} chatOptions @param {() => string | null} conversation */
  async #mountWidget(domainKey, chatOptions, conversation) {
    const { theme, foot, list, follow } = this.#page;
    const element = /** @type {OpenAIChatKit} */ (document.createElement("openai-chatkit"));
    const loading = Object.assign(document.createElement("p"), { className: "quiet arriving", textContent: TEXTS.widget.loading });
    this.#place.replaceChildren(loading, element);
    foot.describe(TEXTS.widget.openai, { text: TEXTS.widget.useBuiltIn, href: document.baseURI });
    const { showWidget, watchWidget } = await loadModule(() => import("../widget.js"));
    const options = () => chatOptions(conversation(), list, { domainKey, colorScheme: theme.scheme });
    follow(element);
    /** @param {string} reason */
    const fail = (reason) => this.#place.contains(element) && showProblem(this.#place, TEXTS.widget.unavailable(reason), linkToToday(TEXTS.widget.useBuiltIn)); // unless the sign-in form has replaced it
    try {
      await showWidget(element, options());
      theme.addEventListener("change", () => element.setOptions(options()));
      watchWidget(element, fail);
    } catch (error) {
      fail(error instanceof Error ? error.message : String(error));
    }
  }
}

/** Returns a link to the list of today. @param {string} text */
export const linkToToday = (text) => Object.assign(document.createElement("a"), { className: "button", href: document.baseURI, textContent: text });

/** Shows a text and what the user can do. @param {HTMLElement} pane @param {string} problem @param {HTMLElement} way */
export function showProblem(pane, problem, way) {
  const text = Object.assign(document.createElement("p"), { className: "quiet", textContent: problem });
  const box = Object.assign(document.createElement("div"), { className: "arriving" });
  box.append(text, way);
  pane.replaceChildren(box);
}

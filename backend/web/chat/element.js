// @ts-check
import { render } from "../vendor/lit-html/lit-html.js";
import { Chat } from "./chat.js";
import { grow } from "./composer.js";
import { Scroll } from "./scroll.js";
import { Ui } from "./ui.js";
import { chatView } from "./view.js";
/** @import {ChatKitOptions} from "@openai/chatkit" */
/** @import {Action} from "./types" */

/** The built-in chat: a custom element with the surface of `<openai-chatkit>`. */
export class TodoChat extends HTMLElement {
  /** The longest message, in characters. */
  messageChars = 8000;
  /** @type {ChatKitOptions | null} */
  #options = null;
  /** @type {Ui | null} */
  #ui = null;
  #root = document.createElement("div");
  #frame = 0;

  connectedCallback() {
    this.addEventListener("keydown", this.#keydown);
    addEventListener("resize", this.#changed);
    if (this.#options) this.#begin(this.#options);
  }

  disconnectedCallback() {
    this.removeEventListener("keydown", this.#keydown);
    removeEventListener("resize", this.#changed);
    this.#ui?.scroll?.close();
    this.#ui?.chat.close();
    this.#ui = null;
    this.replaceChildren();
  }

  /** @param {ChatKitOptions} options */
  setOptions(options) {
    this.#options = options;
    const { theme } = options;
    const scheme = typeof theme === "string" ? theme : theme?.colorScheme;
    if (scheme) this.dataset.theme = scheme;
    else delete this.dataset.theme;
    if (this.#ui) this.#changed();
    else if (this.isConnected) this.#begin(options);
  }

  async focusComposer() {
    this.#live.focusComposer();
  }

  /** @param {string | null} threadId */
  async setThreadId(threadId) {
    await this.#live.open(threadId);
  }

  /** @param {Action} action @param {string} [itemId] */
  async sendCustomAction(action, itemId) {
    await this.#live.chat.act(action, itemId);
  }

  /** @param {{text?: string, newThread?: boolean}} message */
  async sendUserMessage({ text = "", newThread = false }) {
    if (newThread) await this.#live.open(null);
    if (!this.#live.ready) throw new Error("The conversation is loading or being answered.");
    await this.#live.deliver(text);
  }

  /** @param {{text?: string}} value */
  async setComposerValue({ text = "" }) {
    this.#live.write(text);
  }

  async fetchUpdates() {
    await this.#live.chat.load();
  }

  async showHistory() {
    this.#live.showHistory(true);
  }

  async hideHistory() {
    this.#live.showHistory(false);
  }

  get #live() {
    if (!this.#ui) throw new Error("Call setOptions() on a connected element first.");
    return this.#ui;
  }

  /** @param {ChatKitOptions} options */
  #begin(options) {
    if (!("url" in options.api)) throw new Error("The built-in chat needs api.url.");
    const root = (this.#root = Object.assign(document.createElement("div"), { className: "chat" }));
    const news = Object.assign(document.createElement("p"), { className: "visually-hidden", ariaLive: "polite" });
    this.append(root, news);
    /** @param {string} text */
    const announce = (text) => void (news.textContent = text);
    const chat = new Chat(options.api, {
      emit: (name, detail) => void this.dispatchEvent(new CustomEvent(name, { detail })),
      changed: this.#changed,
      announce,
    });
    const ui = (this.#ui = new Ui({
      root,
      chat,
      options: () => this.#options ?? options,
      messageChars: this.messageChars,
      draw: () => this.#draw(),
      announce,
    }));
    this.#draw();
    const log = /** @type {HTMLElement} */ (root.querySelector(".log"));
    ui.scroll = new Scroll(log, { older: () => void ui.older(), changed: this.#changed });
    void ui.open(options.initialThread ?? null);
    void chat.loadHistory();
    this.dispatchEvent(new CustomEvent("chatkit.ready"));
  }

  /** Draw once, in the next frame. */
  #changed = () => {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#draw());
  };

  #draw() {
    const ui = this.#ui;
    cancelAnimationFrame(this.#frame);
    if (!ui) return;
    ui.scroll?.beforeDrawing();
    render(chatView(ui), this.#root);
    const field = this.querySelector("textarea");
    if (field) {
      if (field.value !== ui.draft) field.value = ui.draft; // not what was written there just now
      grow(field);
    }
    ui.scroll?.drawn(ui.conversation.items[0]?.id);
  }

  /** @param {KeyboardEvent} event */
  #keydown = (event) => {
    if (event.key === "Escape" && !event.isComposing) this.#ui?.escape();
  };
}

customElements.define("todo-chat", TodoChat);

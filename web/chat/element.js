// @ts-check
import { TEXTS } from "../texts.js";
import { render } from "../vendor/lit-html/lit-html.js";
import { Chat } from "./chat.js";
import { grow } from "./composer.js";
import { Scroll } from "./scroll.js";
import { Ui } from "./ui.js";
import { chatView } from "./view.js";
/** @import {ChatKitOptions} from "@openai/chatkit" */
/** @import {Agents} from "../options.js" */
/** @import {Action} from "./types" */

const SPACIOUS = 720; // px: wide enough for the list of conversations next to the open one
const CLOCK = 1000; // ms between two drawings of the seconds

/** The built-in chat, a custom element with the interface of `<openai-chatkit>`. */
export class TodoChat extends HTMLElement {
  /** The longest message, in characters. */
  messageChars = 8000;
  /** The server's configuration of agents; null without agents. @type {Agents | null} */
  agents = null;
  /** The tasks that the next message mentions. @type {readonly {id: number, title: string}[]} */
  #selected = [];
  /** Whether the list of conversations covers the chat, as in style.css. */
  narrow = false;
  /** @type {ChatKitOptions | null} */
  #options = null;
  /** @type {Ui | null} */
  #ui = null;
  #root = document.createElement("div");
  #news = document.createElement("p");
  #frame = 0;
  #sizes = new ResizeObserver(() => {
    this.#measure();
    this.#grown = undefined;
    this.changed();
  });
  /** The title of the shown conversation. @type {string | null} */
  #title = null;
  /** Draws the seconds of what lasts. @type {ReturnType<typeof setTimeout> | undefined} */
  #clock;
  /** The text for which the composer's height was measured. @type {string | undefined} */
  #grown;

  connectedCallback() {
    this.addEventListener("keydown", this.#keydown);
    this.#sizes.observe(this);
    if (this.#options) this.#begin(this.#options);
  }

  disconnectedCallback() {
    this.removeEventListener("keydown", this.#keydown);
    this.#sizes.disconnect();
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
    if (this.#ui) this.changed();
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

  /** @param {{text?: string, newThread?: boolean, allowAgents?: boolean}} message `allowAgents`: a new conversation's agents start unasked */
  async sendUserMessage({ text = "", newThread = false, allowAgents = false }) {
    if (newThread) await this.#live.open(null);
    if (!this.#live.ready) throw new Error("The conversation is loading or being answered.");
    await this.#live.deliver(text, undefined, newThread && allowAgents ? { allow_agents: true } : {});
  }

  /** @param {{text?: string}} value */
  async setComposerValue({ text = "" }) {
    this.#live.write(text);
  }

  async fetchUpdates() {
    await this.#live.chat.load();
  }

  async showHistory() {
    await this.#live.showHistory(true);
  }

  async hideHistory() {
    await this.#live.showHistory(false);
  }

  get options() {
    if (!this.#options) throw new Error("Call setOptions() first.");
    return this.#options;
  }

  get selected() {
    return this.#selected;
  }

  set selected(tasks) {
    this.#selected = tasks;
    this.changed();
  }

  /** @param {string} name @param {unknown} [detail] */
  emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  /** Says that a text of the shown answer was withdrawn; what is around it stays where it is. */
  withdrawn() {
    this.announce(TEXTS.talk.correcting);
    this.#ui?.scroll?.keep(this.querySelector(".answer[aria-busy=true]"));
  }

  /** Announces a text to screen readers. @param {string} text */
  announce(text) {
    this.#news.textContent = text;
  }

  get #live() {
    if (!this.#ui) throw new Error("Call setOptions() on a connected element first.");
    return this.#ui;
  }

  /** @param {ChatKitOptions} options */
  #begin(options) {
    if (!("url" in options.api)) throw new Error("The built-in chat needs api.url.");
    this.#root = Object.assign(document.createElement("div"), { className: "chat" });
    this.#news = Object.assign(document.createElement("p"), { className: "visually-hidden", ariaLive: "polite" });
    this.append(this.#root, this.#news);
    this.#measure();
    const chat = new Chat(options.api, this);
    const ui = (this.#ui = new Ui(this, chat));
    this.draw();
    const log = /** @type {HTMLElement} */ (this.querySelector(".log"));
    ui.scroll = new Scroll(log, { older: () => void chat.loadOlder(), changed: this.changed });
    if (options.initialThread) void import("./log.js").catch(() => {}); // loads it early
    void ui.open(options.initialThread ?? null);
    void chat.loadHistory();
    this.emit("chatkit.ready");
  }

  #measure() {
    this.narrow = this.clientWidth < SPACIOUS;
    this.toggleAttribute("data-narrow", this.narrow);
  }

  /** Draws once, in the next frame. */
  changed = () => {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.draw());
  };

  draw() {
    const ui = this.#ui;
    cancelAnimationFrame(this.#frame);
    if (!ui) return;
    const focused = this.contains(document.activeElement) ? document.activeElement : null;
    const inHistory = focused?.closest("nav") != null;
    const place = focused?.closest(".widget li, .widget");
    if (ui.conversation.title !== this.#title) {
      this.#title = ui.conversation.title;
      this.emit("todo.title", { title: this.#title });
    }
    ui.scroll?.beforeDrawing();
    render(chatView(ui), this.#root);
    if (focused && (!focused.isConnected || focused.matches(":disabled"))) ui.takeFocus(inHistory, place);
    const field = /** @type {HTMLTextAreaElement | null} */ (this.querySelector(".composer textarea"));
    if (field && field.value !== ui.draft) field.value = ui.draft; // keeps what was typed just now
    const grown = field ? `${ui.historyOpen} ${field.value}` : undefined;
    if (field && grown !== this.#grown) grow(field);
    this.#grown = grown;
    ui.scroll?.drawn(ui.conversation.items[0]?.id);
    clearTimeout(this.#clock);
    if (ui.conversation.progress) this.#clock = setTimeout(this.changed, CLOCK);
  }

  /** @param {KeyboardEvent} event */
  #keydown = (event) => {
    if (event.key === "Escape" && !event.isComposing) this.#ui?.escape();
  };
}

customElements.define("todo-chat", TodoChat);

// @ts-check
import { removeBidiControls } from "../words.js";
import { TEXTS } from "../texts.js";
import { render } from "../vendor/lit-html/lit-html.js";
import { Chat } from "./chat.js";
import { grow } from "./composer.js";
import { timesOfTwins } from "./days.js";
import { loadLog } from "./load-log.js";
import { Scroll } from "./scroll.js";
import { Ui } from "./ui.js";
import { chatView } from "./view.js";
/** @import {Agents, ChatOptions} from "../options.js" */
/** @import {Unsaved} from "../unsaved.js" */
/** @import {Thread} from "./types" */

/**
 * Also the longest message in characters, the server's agents, if it has any, what the user has not saved, and whether the field of
 * the first conversation gets the focus, as that of each later one does.
 * @typedef {ChatOptions & {messageChars: number, agents: Agents | null, unsaved: Unsaved, takesFocus: boolean}} Options
 */

const SPACIOUS = 720; // px: wide enough for the list of conversations next to the open one
const CLOCK = 1000; // ms between two drawings of the seconds

/** The built-in chat, a custom element with the methods of `<openai-chatkit>` that the page uses. Its options are set before it is connected. */
export class TodoChat extends HTMLElement {
  options = /** @type {Options} */ ({});
  /** The tasks that the next message mentions. @type {readonly {id: number, title: string}[]} */
  #selected = [];
  /** Whether the list of conversations covers the chat, as in style.css. */
  narrow = false;
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
  /** The conversations of the last `todo.history`. @type {readonly Thread[]} */
  #threads = [];
  /** The title of the shown conversation. @type {string | null} */
  #title = null;
  /** Draws the seconds of what lasts. @type {ReturnType<typeof setTimeout> | undefined} */
  #clock;
  /** The text for which the composer's height was measured. @type {string | undefined} */
  #grown;

  connectedCallback() {
    this.addEventListener("keydown", this.#keydown);
    this.#sizes.observe(this);
    this.#begin();
  }

  disconnectedCallback() {
    this.removeEventListener("keydown", this.#keydown);
    this.#sizes.disconnect();
    this.#ui?.scroll?.close();
    this.#ui?.chat.close();
    this.#ui = null;
    this.replaceChildren();
  }

  async focusComposer() {
    this.#ui?.focusComposer();
  }

  /** @param {string | null} threadId */
  async setThreadId(threadId) {
    await this.#ui?.open(threadId);
  }

  /** @param {{text?: string, newThread?: boolean, allowAgents?: boolean}} message `allowAgents`: a new conversation's agents start unasked */
  async sendUserMessage({ text = "", newThread = false, allowAgents = false }) {
    if (newThread) await this.#ui?.open(null);
    await this.#ui?.deliver(text, newThread && allowAgents ? { metadata: { allow_agents: true } } : {});
  }

  async showHistory() {
    await this.#ui?.showHistory(true);
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

  /** Shows what another tab has left, or removes what was discarded. */
  restored() {
    this.#ui?.restore();
    this.changed();
  }

  /** Says that a text of the shown answer was withdrawn; what is around it stays where it is. */
  withdrawn() {
    this.announce(TEXTS.talk.correcting);
    this.#ui?.scroll?.keep(this.querySelector(".answer[aria-busy=true]"));
  }

  /** Announces a text to screen readers. @param {string} text */
  announce(text) {
    this.#news.textContent = removeBidiControls(text);
  }

  #begin() {
    const { api, initialThread, unsaved, takesFocus } = this.options;
    this.#root = Object.assign(document.createElement("div"), { className: "chat" });
    this.#news = Object.assign(document.createElement("p"), { className: "visually-hidden", ariaLive: "polite" });
    this.append(this.#root, this.#news);
    this.#measure();
    const chat = new Chat(api, unsaved, this);
    const ui = (this.#ui = new Ui(this, chat));
    this.draw();
    const log = /** @type {HTMLElement} */ (this.querySelector(".log"));
    ui.scroll = new Scroll(log, { older: () => void chat.loadOlder(), changed: this.changed });
    if (initialThread) void loadLog(); // loads it early
    void ui.begin(initialThread ?? null, takesFocus);
    void chat.loadHistory();
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
    const { threads, loaded, titled } = ui.chat.history;
    if (threads !== this.#threads && (loaded || threads.length > 0) && !titled) {
      this.#threads = threads;
      this.emit("todo.history", { threads: this.#threads, times: timesOfTwins(this.#threads) });
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

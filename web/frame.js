// @ts-check
import { icon } from "./icons.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
/** @import {Config} from "./options.js" */
/** @import {Theme, ThemeChoice} from "./theme.js" */

const MESSAGE_SHOWN = 6000; // ms
/** @type {readonly Theme[]} */
const THEMES = ["system", "light", "dark"];

/** What `GET /usage` responds. @typedef {{input_tokens: number, output_tokens: number, limit: number | null}} Usage */

/** The header besides the tabs: a badge that describes the server, and the menu. */
export class Frame {
  /** Whether a user is signed in. */
  entered = false;
  /** Whether notifications are shown; undefined if the browser cannot show them. @type {boolean | undefined} */
  #reminding;
  /** The name of the shown chat. */
  #chat = "";
  /** @type {{text: string, href: string} | undefined} */
  #other;
  /** The model tokens of the user, since the menu was opened. @type {Usage | undefined} */
  #usage;
  #place = byId("corner");
  #config;
  #theme;
  #actions;

  /** @param {Config} config @param {ThemeChoice} theme @param {{remind: (wanted: boolean) => void, calendar: () => void, memory: () => void, signOut: () => void, loadUsage: () => Promise<Usage | undefined>}} actions */
  constructor(config, theme, actions) {
    this.#config = config;
    this.#theme = theme;
    this.#actions = actions;
    this.#draw();
  }

  /** @param {boolean} entered */
  enter(entered) {
    this.entered = entered;
    this.#usage = undefined;
    this.#draw();
  }

  /** @param {boolean | undefined} reminding */
  remind(reminding) {
    this.#reminding = reminding;
    this.#draw();
  }

  /** Sets the name of the shown chat and the link to the other one. @param {string} text @param {{text: string, href: string}} [other] */
  describe(text, other) {
    this.#chat = text;
    this.#other = other;
    this.#draw();
  }

  /** Shows a sentence for a while. @param {string} text */
  say(text) {
    const message = Object.assign(document.createElement("p"), { className: "said", textContent: text });
    byId("said").replaceChildren(message);
    setTimeout(() => message.remove(), MESSAGE_SHOWN);
  }

  /** @param {ToggleEvent} event */
  async #showUsage({ newState }) {
    if (newState !== "open" || !this.entered) return;
    const usage = await this.#actions.loadUsage();
    this.#usage = this.entered ? usage : undefined; // else the user has signed out meanwhile
    this.#draw();
  }

  #draw() {
    render([this.#badge(), this.#menu()], this.#place);
  }

  #badge() {
    const { offline, name, writesCalls } = this.#config.model;
    const { agents } = this.#config;
    const { about } = TEXTS;
    const label = offline ? about.offline : writesCalls ? about.limited(name) : name;
    const short = offline ? about.offlineShort : writesCalls ? about.limitedShort : icon("info");
    return html`
      <button type="button" class="server ${offline || writesCalls ? "limited" : ""}" popovertarget="about" aria-label=${label} title=${about.title}>
        <span class="long">${label}</span><span class="short">${short}</span>
      </button>
      <div id="about" class="panel" popover role="dialog" aria-label=${about.title}>
        <h2>${about.title}</h2>
        <p>${offline ? about.offlineMeans : about.model(name)}</p>
        ${writesCalls ? html`<p>${about.writesCalls}</p>` : nothing}
        ${offline ? setUp() : nothing}
        <p>${this.#config.auth === "none" ? about.unchecked : about.checked}</p>
        <p>${agents?.offered ? about.agents(agents.confinement) : about.noAgents}</p>
        ${this.#chat ? html`<p class="which">${this.#chat}</p>` : nothing}
        ${this.#other ? html`<a class="button" href=${this.#other.href}>${this.#other.text}</a>` : nothing}
      </div>
    `;
  }

  #menu() {
    const { remind, calendar, memory, signOut } = this.#actions;
    const reminding = this.#reminding;
    return html`
      <button type="button" class="icon-button" popovertarget="menu" aria-label=${TEXTS.menu} title=${TEXTS.menu}>${icon("dots")}</button>
      <div id="menu" class="panel" popover role="dialog" aria-label=${TEXTS.menu} @beforetoggle=${this.#showUsage.bind(this)}>
        <fieldset class="choice">
          <legend>${TEXTS.theme.title}</legend>
          ${THEMES.map((theme) => this.#themeChoice(theme))}
        </fieldset>
        ${this.entered && reminding !== undefined
          ? html`<button type="button" class="item" aria-pressed=${reminding} @click=${() => remind(!reminding)}>
              ${icon("bell")}${TEXTS.remind}${reminding ? icon("check") : nothing}
            </button>`
          : nothing}
        ${this.entered ? menuButton("calendar", TEXTS.calendar.title, calendar) : nothing}
        ${this.entered ? menuButton("notes", TEXTS.memory.title, memory) : nothing}
        ${this.entered && this.#config.auth === "jwt" ? menuButton("leave", TEXTS.signOut, signOut) : nothing}
        ${this.#tokens()}
      </div>
    `;
  }

  #tokens() {
    if (!this.#usage || (this.#usage.limit === null && this.#config.model.offline)) return nothing;
    const { input_tokens, output_tokens, limit } = this.#usage;
    return html`<p class="tokens">${TEXTS.tokens(input_tokens + output_tokens, limit)}</p>`;
  }

  /** @param {Theme} theme */
  #themeChoice(theme) {
    const choose = () => this.#theme.choose(theme);
    return html`<label
      ><input type="radio" name="theme" value=${theme} .checked=${this.#theme.chosen === theme} @change=${choose} /><span
        >${icon(theme)}${TEXTS.theme[theme]}</span
      ></label
    >`;
  }
}

const setUp = () => html`
  <details>
    <summary>${TEXTS.about.setUp}</summary>
    <p>${TEXTS.about.setUpHow}</p>
    <pre tabindex="0"><code>${TEXTS.about.setUpLines}</code></pre>
    <p>${TEXTS.about.setUpElse}</p>
  </details>
`;

/** @param {import("./icons.js").Icon} drawn @param {string} label @param {() => void} action */
function menuButton(drawn, label, action) {
  const click = () => {
    byId("menu").hidePopover();
    action();
  };
  return html`<button type="button" class="item" @click=${click}>${icon(drawn)}${label}</button>`;
}

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no #${id}`);
  return element;
}

// @ts-check
import { storage } from "../chat/storage.js";
import { user } from "../http.js";
import { icon } from "../icons.js";
import { removeBidiControls } from "../words.js";
import { ariaKeys, singleKeys, withKey } from "../shortcuts.js";
import { KEYS, TEXTS } from "../texts.js";
import { html, nothing, render } from "../vendor/lit-html/lit-html.js";
import { byId } from "./elements.js";
/** @import {Icon} from "../icons.js" */
/** @import {Command} from "../shortcuts.js" */
/** @import {Config} from "../options.js" */

/** @type {readonly Theme[]} */
const THEMES = ["system", "light", "dark"];

/** What `GET /usage` responds. @typedef {{input_tokens: number, output_tokens: number, limit: number | null}} Usage */

/**
 * What the menu's items do.
 *
 * @typedef {object} Actions
 * @property {() => void} alerts
 * @property {() => void} calendar
 * @property {() => void} memory
 * @property {() => void} profile
 * @property {() => void} phone
 * @property {() => void} clients
 * @property {() => void} schedules
 * @property {() => void} devices
 * @property {() => void} password
 * @property {() => void} accessTokens
 * @property {() => void} keys
 * @property {() => void} keysChanged
 * @property {() => void} signOut
 * @property {() => Promise<Usage | undefined>} loadUsage
 */

/** The foot of the side bar: the model, who is signed in, and the menu. */
export class Foot {
  /** Who is signed in. @type {string | null} */
  #user = null;
  /** How they want to be called, if they have said it. */
  #name = "";
  /** The name of the shown chat. */
  #chat = "";
  /** @type {{text: string, href: string} | undefined} */
  #other;
  /** The model tokens of the user, since the menu was opened. @type {Usage | undefined} */
  #usage;
  #place = byId("foot");
  #config;
  #theme;
  #actions;

  /** @param {Config} config @param {ThemeChoice} theme @param {Actions} actions */
  constructor(config, theme, actions) {
    this.#config = config;
    this.#theme = theme;
    this.#actions = actions;
    this.draw();
  }

  /** @param {string | null} user who is signed in; null for nobody */
  enter(user) {
    this.#user = user;
    this.#name = "";
    this.#usage = undefined;
    this.draw();
  }

  /** @param {string} name */
  call(name) {
    this.#name = this.#user === null ? "" : name;
    this.draw();
  }

  /** Sets the name of the shown chat and the link to the other one. @param {string} text @param {{text: string, href: string}} [other] */
  describe(text, other) {
    this.#chat = text;
    this.#other = other;
    this.draw();
  }

  /** @param {ToggleEvent} event */
  async #showUsage({ newState }) {
    if (newState !== "open" || this.#user === null) return;
    const usage = await this.#actions.loadUsage();
    this.#usage = this.#user !== null ? usage : undefined; // else the user has signed out meanwhile
    this.draw();
  }

  draw() {
    const id = this.#config.auth === "none" ? null : this.#user;
    const title = id === null ? nothing : removeBidiControls(TEXTS.signedInAs(id));
    const name = this.#name || id;
    const shown = name ? html`<p class="user" title=${title} dir="auto" translate="no">${name}</p>` : nothing;
    render([shown, this.#badge(), this.#menu()], this.#place);
  }

  #badge() {
    const { offline, name, writesCalls } = this.#config.model;
    const { agents } = this.#config;
    const { about } = TEXTS;
    const label = offline ? about.offline : writesCalls ? about.limited(name) : name;
    return html`
      <button type="button" class="server ${offline || writesCalls ? "limited" : ""}" popovertarget="about" title=${about.title}>
        <span>${label}</span>
      </button>
      <div id="about" class="panel" popover role="dialog" aria-label=${about.title}>
        <h2>${about.title}</h2>
        <p>${offline ? about.offlineMeans : about.model(name)}</p>
        ${writesCalls ? html`<p>${about.writesCalls}</p>` : nothing}
        ${offline ? setUp() : nothing}
        <p>${this.#config.auth !== "none" ? about.checked : this.#config.linksDevices ? about.linked : about.unchecked}</p>
        <p>${agents?.offered ? about.agents(agents.confinement) : about.noAgents}</p>
        ${this.#chat ? html`<p class="which">${this.#chat}</p>` : nothing}
        ${this.#other ? html`<a class="button" href=${this.#other.href}>${this.#other.text}</a>` : nothing}
      </div>
    `;
  }

  #menu() {
    const actions = this.#actions;
    const { auth, linksDevices } = this.#config;
    const isLinkedDevice = auth === "none" && user.session !== null;
    return html`
      <button type="button" class="icon-button" popovertarget="menu" aria-label=${TEXTS.menu} title=${TEXTS.menu}>${icon("dots")}</button>
      <div id="menu" class="panel" popover role="dialog" aria-label=${TEXTS.menu} @beforetoggle=${this.#showUsage.bind(this)}>
        <fieldset class="choice">
          <legend>${TEXTS.theme.title}</legend>
          ${THEMES.map((theme) => this.#themeChoice(theme))}
        </fieldset>
        ${this.#user !== null ? [menuButton("bell", TEXTS.alerts, actions.alerts), menuButton("calendar", TEXTS.calendar.title, actions.calendar)] : nothing}
        ${this.#user !== null ? menuButton("clock", TEXTS.schedules.title, actions.schedules) : nothing}
        ${this.#user !== null ? [menuButton("notes", TEXTS.memory.title, actions.memory), menuButton("profile", TEXTS.profile.title, actions.profile)] : nothing}
        ${this.#user !== null ? [menuButton("keys", KEYS.title, actions.keys, "keys"), this.#singleKeys()] : nothing}
        ${this.#user !== null && !["none", "jwt"].includes(auth) ? menuButton("programs", TEXTS.clients.menu, actions.clients) : nothing}
        ${this.#user !== null && linksDevices && !isLinkedDevice ? menuButton("phone", TEXTS.phone.menu, actions.phone) : nothing}
        ${this.#user !== null && (linksDevices || auth === "proxy") ? menuButton("devices", TEXTS.devices.menu, actions.devices) : nothing}
        ${this.#user !== null && auth === "password" ? menuButton("lock", TEXTS.passwords.menu, actions.password) : nothing}
        ${this.#user !== null && auth !== "none" ? menuButton("token", TEXTS.accessTokens.title, actions.accessTokens) : nothing}
        ${this.#user !== null && (auth !== "none" || isLinkedDevice) ? menuButton("leave", TEXTS.signOut, actions.signOut) : nothing}
        ${isSecureContext ? nothing : html`<p class="tokens">${TEXTS.insecure}</p>`} ${this.#tokens()}
      </div>
    `;
  }

  /** Renders the switch of the keys that are a single character. */
  #singleKeys() {
    const toggle = () => {
      singleKeys.on = !singleKeys.on;
      this.#actions.keysChanged();
    };
    return html`<button type="button" class="item" aria-pressed=${singleKeys.on} @click=${toggle}>
      ${icon("keys")}${KEYS.single}${singleKeys.on ? icon("check") : nothing}
    </button>`;
  }

  /** Renders the line of the usage, also before it is loaded: an item must not move while the user presses it. */
  #tokens() {
    const { auth, model } = this.#config;
    if (this.#user === null || (auth === "none" && model.offline && !this.#usage?.limit)) return nothing; // it costs nothing
    const { input_tokens = 0, output_tokens = 0, limit = null } = this.#usage ?? {};
    const isShown = this.#usage && !(limit === null && model.offline);
    return html`<p class="tokens usage">${isShown ? TEXTS.tokens(input_tokens + output_tokens, limit) : nothing}</p>`;
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

/** @param {Icon} drawn @param {string} label @param {() => void} action @param {Command} [command] */
function menuButton(drawn, label, action, command) {
  const click = () => {
    byId("menu").hidePopover();
    action();
  };
  return html`<button type="button" class="item" aria-keyshortcuts=${ariaKeys(command) ?? nothing} title=${command ? withKey(label, command) : nothing} @click=${click}>
    ${icon(drawn)}${label}
  </button>`;
}

/** @typedef {"system" | "light" | "dark"} Theme */

const KEY = "todo-theme"; // also in early.js; it belongs to the browser and stays after signing out
const GROUNDS = { light: "#ffffff", dark: "#16181a" }; // as in style.css
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/** The theme of the page: the system's or a chosen one. */
export class ThemeChoice extends EventTarget {
  constructor() {
    super();
    systemIsDark.addEventListener("change", () => this.#changed());
    this.#changed();
  }

  /** @returns {Theme} */
  get chosen() {
    const stored = storage.get(KEY);
    return stored === "light" || stored === "dark" ? stored : "system";
  }

  /** The shown theme. @returns {"light" | "dark"} */
  get scheme() {
    const { chosen } = this;
    if (chosen !== "system") return chosen;
    return systemIsDark.matches ? "dark" : "light";
  }

  /** @param {Theme} theme */
  choose(theme) {
    storage.set(KEY, theme === "system" ? null : theme);
    this.#changed();
  }

  #changed() {
    document.documentElement.dataset.theme = this.chosen;
    document.querySelector("meta[name=theme-color]")?.setAttribute("content", GROUNDS[this.scheme]);
    this.dispatchEvent(new Event("change"));
  }
}

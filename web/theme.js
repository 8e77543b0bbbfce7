// @ts-check
import { storage } from "./chat/storage.js";

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

// @ts-check
/** @import {Api} from "./data/api.js" */
/** @import {Moment, TaskPreview} from "./types" */

const PAUSE = 120; // ms after the last letter

/** What the server understands of a text while it is typed. Responses to older texts are dropped. */
export class Preview {
  /** The last response. @type {TaskPreview | null} */
  understood = null;
  #text = "";
  #dates = true;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #api;
  #mode;
  #changed;

  /** @param {Api} api @param {"task" | "date"} mode @param {() => void} changed */
  constructor(api, mode, changed) {
    this.#api = api;
    this.#mode = mode;
    this.#changed = changed;
  }

  /** Asks the server after a pause. @param {string} text @param {Moment} now @param {boolean} [dates] whether words of time are a date */
  write(text, now, dates = true) {
    clearTimeout(this.#timer);
    this.#text = text;
    this.#dates = dates;
    if (!text.trim()) this.understood = null;
    else this.#timer = setTimeout(() => void this.read(text, now, dates), PAUSE);
  }

  /** Asks the server at once; null without a response. @param {string} text @param {Moment} now */
  async read(text, now, dates = true) {
    const understood = await this.#api.preview(text, this.#mode, now, dates).catch(() => null);
    if (text === this.#text && dates === this.#dates) {
      this.understood = understood;
      this.#changed();
    }
    return understood;
  }
}

// @ts-check
import { ConnectionLost } from "./protocol.js";

const FIRST_PAUSE = 500; // ms
const MAX_PAUSE = 5000; // ms
const SHOWN_AGAIN = 4000; // ms

/** Tracks whether the server can be reached; if not, asks again with growing pauses. */
export class Connection {
  /** @type {"ok" | "lost" | "back"} */
  state = "ok";
  #pause = FIRST_PAUSE;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #probing = false;
  #probe;
  #changed;
  #online = () => void this.#retry();

  /**
   * @param {() => Promise<void>} probe throws `ConnectionLost` while the server cannot be reached
   * @param {() => void} changed
   */
  constructor(probe, changed) {
    this.#probe = probe;
    this.#changed = changed;
    addEventListener("online", this.#online);
  }

  lost() {
    if (this.state === "lost") return;
    this.#pause = this.state === "ok" ? FIRST_PAUSE : this.#longer; // it came back for a moment
    this.#set("lost");
    this.#schedule(() => void this.#retry(), this.#pause);
  }

  get #longer() {
    return Math.min(this.#pause * 1.6, MAX_PAUSE);
  }

  close() {
    clearTimeout(this.#timer);
    removeEventListener("online", this.#online);
    this.state = "ok";
  }

  async #retry() {
    if (this.state !== "lost" || this.#probing) return;
    this.#probing = true;
    clearTimeout(this.#timer);
    try {
      await this.#probe();
      if (this.state !== "lost") return; // it was closed
      this.#set("back");
      this.#schedule(() => this.#set("ok"), SHOWN_AGAIN);
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
      this.#pause = this.#longer;
      this.#schedule(() => void this.#retry(), this.#pause);
    } finally {
      this.#probing = false;
    }
  }

  /** @param {"ok" | "lost" | "back"} state */
  #set(state) {
    this.state = state;
    this.#changed();
  }

  /** @param {() => void} action @param {number} milliseconds */
  #schedule(action, milliseconds) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(action, milliseconds);
  }
}

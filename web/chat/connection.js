// @ts-check
import { ConnectionLost } from "./protocol.js";

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 5000;
const SHOWN_AGAIN = 4000;

/** Whether the server can be reached; once it cannot, asks with growing pauses until it can. */
export class Connection {
  /** @type {"ok" | "lost" | "back"} */
  state = "ok";
  #pause = FIRST_PAUSE;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #probing = false;
  #probe;
  #changed;
  #online = () => void this.#try();

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
    this.#pause = FIRST_PAUSE;
    this.#set("lost");
    this.#later(() => void this.#try(), this.#pause);
  }

  close() {
    clearTimeout(this.#timer);
    removeEventListener("online", this.#online);
    this.state = "ok";
  }

  async #try() {
    if (this.state !== "lost" || this.#probing) return;
    this.#probing = true;
    clearTimeout(this.#timer);
    try {
      await this.#probe();
      if (this.state !== "lost") return; // closed meanwhile
      this.#set("back");
      this.#later(() => this.#set("ok"), SHOWN_AGAIN);
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
      this.#pause = Math.min(this.#pause * 1.6, LONGEST_PAUSE);
      this.#later(() => void this.#try(), this.#pause);
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
  #later(action, milliseconds) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(action, milliseconds);
  }
}

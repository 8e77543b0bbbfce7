// @ts-check
import { storage } from "./chat/storage.js";
/** @import {TodoChat} from "./chat/element.js" */
/** @import {Config} from "./options.js" */

const OFFLINE =
  "The offline model answers: plain rules, not an AI. For a real model, stop and start with CEREBRAS_API_KEY=… ./todo up";
const UNCHECKED = "Nobody is checked here: whoever reaches this address is its one person.";
const UNCHECKED_READ = "todo.read.unchecked";

/** What stands around the chat: what is to be known of this server, which chat it is, and the way out. */
export class Frame {
  #about = /** @type {HTMLDetailsElement} */ (byId("about"));
  #spacious = matchMedia("(min-width: 720px) and (min-height: 480px)"); // as in style.css
  #place;

  /** @param {Config} config @param {HTMLElement} place where the chat is */
  constructor({ auth, model }, place) {
    this.#place = place;
    if (model.offline) {
      byId("about-summary").textContent = "Offline model, no AI";
      byId("facts").append(fact(OFFLINE));
    }
    if (auth === "none" && !storage.get(UNCHECKED_READ)) byId("facts").append(unchecked());
    this.#spacious.addEventListener("change", () => this.arrange());
    document.addEventListener("click", ({ target }) => target instanceof Node && !this.#about.contains(target) && this.#fold());
    this.#about.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.#spacious.matches) return;
      event.stopPropagation(); // it would stop the answer
      this.#fold();
      byId("about-summary").focus();
    });
    this.arrange();
  }

  /** On a small screen all of it is behind one button, which stands in the chat's own bar where there is one. */
  arrange() {
    const spacious = this.#spacious.matches;
    const about = this.#about;
    const chat = /** @type {TodoChat | null} */ (this.#place.querySelector("todo-chat"));
    const [header, footer] = ["body > header", "body > footer"].map((one) => /** @type {HTMLElement} */ (document.querySelector(one)));
    (spacious ? footer : byId("facts")).append(byId("strip"));
    (spacious ? header : byId("facts")).append(byId("calendar"), byId("sign-out"));
    about.open = spacious;
    if (chat) {
      chat.corner = spacious ? null : about;
      chat.changed();
    }
    if (spacious || !chat) header?.insertBefore(about, header.children[1] ?? null);
  }

  #fold() {
    if (!this.#spacious.matches) this.#about.open = false;
  }
}

/** @param {string} text */
const fact = (text) => Object.assign(document.createElement("p"), { textContent: text });

/** Said until somebody has read it. */
function unchecked() {
  const sentence = fact(`${UNCHECKED} `);
  const read = Object.assign(document.createElement("button"), { type: "button", className: "text-button", textContent: "Got it" });
  read.addEventListener("click", (event) => {
    event.stopPropagation();
    storage.set(UNCHECKED_READ, "yes");
    sentence.remove();
  });
  sentence.append(read);
  return sentence;
}

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no #${id}`);
  return element;
}

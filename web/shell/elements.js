// @ts-check
import { removeBidiControls } from "../words.js";

const MESSAGE_SHOWN = 6000; // ms

/** Returns an element of index.html. @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no #${id}`);
  return element;
}

/** Shows a message for some seconds, and announces it. @param {string} text */
export function say(text) {
  const message = Object.assign(document.createElement("p"), { className: "said", textContent: removeBidiControls(text) });
  byId("said").replaceChildren(message);
  setTimeout(() => message.remove(), MESSAGE_SHOWN);
}

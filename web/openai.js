// @ts-check
import { TEXTS } from "./texts.js";
/** @import {ChatKitOptions, OpenAIChatKit} from "@openai/chatkit" */

const WHY = TEXTS.chats;
const SCRIPT = "https://cdn.platform.openai.com/deployments/chatkit/chatkit.js";
const WATCHED = 10_000; // a widget whose domain is refused vanishes seconds after it said that it is ready
const LOWEST = 50; // px

/**
 * Mount OpenAI's widget beside what is there, unseen until it is ready; throws the reason why it could not be, and leaves nothing behind then.
 * @param {HTMLElement} place
 * @param {ChatKitOptions} options
 * @param {number} milliseconds how long it may take until it is ready
 * @returns {Promise<OpenAIChatKit>}
 */
export async function mountWidget(place, options, milliseconds) {
  const given = new AbortController();
  /** @type {OpenAIChatKit | undefined} */
  let element;
  const mounted = async () => {
    await loadScript();
    if (given.signal.aborted) throw new Error(WHY.late);
    const made = (element = /** @type {OpenAIChatKit} */ (document.createElement("openai-chatkit")));
    const ready = isReady(made);
    made.setOptions(options);
    made.classList.add("coming"); // it needs a place to become ready, and is not seen yet
    place.append(made);
    await ready;
    made.classList.remove("coming");
    return made;
  };
  try {
    return await Promise.race([mounted(), tooLate(milliseconds, given.signal)]);
  } catch (error) {
    element?.remove();
    throw error;
  } finally {
    given.abort();
  }
}

/**
 * Tell why, should the widget be refused or vanish soon after it was ready.
 * @param {OpenAIChatKit} element
 * @param {(reason: string) => void} failed
 */
export function watchWidget(element, failed) {
  const frame = frameOf(element);
  const end = Date.now() + WATCHED;
  /** @param {string} reason */
  const fail = (reason) => {
    clearInterval(timer);
    failed(reason);
  };
  const timer = setInterval(() => {
    if (Date.now() > end) clearInterval(timer);
    else if (!element.isConnected || (frame && !frameOf(element))) fail(WHY.away);
    else if ((frame ?? element).getBoundingClientRect().height < LOWEST) fail(WHY.empty);
  }, 250);
  element.addEventListener("chatkit.error", ({ detail: { error } }) => {
    if (Date.now() < end && /domain/i.test(`${error?.name} ${error?.message}`)) fail(WHY.refused);
  });
}

/** Add the script, once in the life of the page. */
async function loadScript() {
  if (customElements.get("openai-chatkit")) return;
  const known = document.querySelector(`script[src="${SCRIPT}"]`);
  const script = known ?? Object.assign(document.createElement("script"), { src: SCRIPT, async: true });
  const failure = new Promise((_, reject) => {
    script.addEventListener("error", () => reject(new Error(WHY.unloaded)), { once: true });
  });
  if (!known) document.head.append(script);
  await Promise.race([customElements.whenDefined("openai-chatkit"), failure]);
}

/** @param {OpenAIChatKit} element @returns {Promise<void>} */
function isReady(element) {
  return new Promise((resolve, reject) => {
    element.addEventListener("chatkit.ready", () => resolve(), { once: true });
    element.addEventListener("chatkit.error", ({ detail: { error } }) => reject(new Error(error?.message || WHY.failed)), {
      once: true,
    });
  });
}

/** @param {number} milliseconds @param {AbortSignal} signal @returns {Promise<never>} */
function tooLate(milliseconds, signal) {
  return new Promise((_, reject) => {
    const timer = setTimeout(() => reject(new Error(WHY.slow(milliseconds / 1000))), milliseconds);
    signal.addEventListener("abort", () => clearTimeout(timer));
  });
}

/** @param {OpenAIChatKit} element */
const frameOf = (element) => (element.shadowRoot ?? element).querySelector("iframe");

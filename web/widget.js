// @ts-check
import { TEXTS } from "./texts.js";
/** @import {ChatKitOptions, OpenAIChatKit} from "@openai/chatkit" */

const WHY = TEXTS.widget;
const SCRIPT = "https://cdn.platform.openai.com/deployments/chatkit/chatkit.js";
const READY_WITHIN = 15_000; // ms
const WATCHED = 10_000; // ms: a widget with a rejected domain vanishes seconds after it was ready
const LOWEST = 50; // px

/**
 * Resolves once OpenAI's element is ready; rejects with the reason why it cannot be shown.
 * @param {OpenAIChatKit} element
 * @param {ChatKitOptions} options
 */
export async function showWidget(element, options) {
  await Promise.race([loadScript(), timeOut()]);
  for (const other of [...(element.parentElement?.children ?? [])]) if (other !== element) other.remove();
  const ready = isReady(element);
  element.setOptions(options);
  await Promise.race([ready, timeOut()]);
}

/**
 * Calls `failed` with a reason if the widget is rejected or vanishes soon after it was ready.
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
    if (Date.now() < end && /domain/i.test(`${error?.name} ${error?.message}`)) fail(WHY.notAllowed);
  });
}

/** Loads OpenAI's script once. */
async function loadScript() {
  if (customElements.get("openai-chatkit")) return;
  const script = Object.assign(document.createElement("script"), { src: SCRIPT, async: true });
  const failure = new Promise((_, reject) => {
    script.addEventListener("error", () => reject(new Error(WHY.unloaded)), { once: true });
  });
  document.head.append(script);
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

/** @returns {Promise<never>} */
function timeOut() {
  return new Promise((_, reject) => setTimeout(() => reject(new Error(WHY.slow(READY_WITHIN / 1000))), READY_WITHIN));
}

/** @param {OpenAIChatKit} element */
const frameOf = (element) => (element.shadowRoot ?? element).querySelector("iframe");

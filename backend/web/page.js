// @ts-check
import "./chat/element.js";
import { storage } from "./chat/storage.js";
import { chatOptions } from "./options.js";
/** @import {OpenAIChatKit} from "@openai/chatkit" */
/** @import {TodoChat} from "./chat/element.js" */
/** @import {Config} from "./options.js" */

const OFFLINE =
  "The offline model answers: plain rules, not an AI. For a real model, stop and start with CEREBRAS_API_KEY=… ./todo up";
const UNCHECKED = "Nobody is checked here: whoever reaches this address is its one person.";

/** @type {Config} */
const config = JSON.parse(byId("config").textContent ?? "");
const place = byId("chat");
const dark = matchMedia("(prefers-color-scheme: dark)");

showNotices();
byId("sign-out").addEventListener("click", () => void leave());
void boot();

async function boot() {
  if (!config.widget || config.ui === "built-in") return mountBuiltIn("Built-in chat");
  showStrip("Loading OpenAI's widget…");
  try {
    const { mountWidget, watchWidget } = await import("./openai.js");
    const options = () => chatOptions(config, storage.get("todo.thread"), dark.matches ? "dark" : "light");
    const element = await mountWidget(place, options(), config.ui === "openai" ? 15_000 : 3_000);
    follow(element);
    dark.addEventListener("change", () => element.setOptions(options()));
    showStrip("OpenAI's ChatKit widget", { text: "Use the built-in chat", href: "?ui=built-in" });
    watchWidget(element, (reason) => place.contains(element) || !place.hasChildNodes() ? fallBack(reason) : undefined);
  } catch (error) {
    fallBack(error instanceof Error ? error.message : String(error));
  }
}

/** @param {string} reason */
function fallBack(reason) {
  mountBuiltIn(`OpenAI's widget could not be loaded (${reason}), so this is the built-in chat.`);
}

/** @param {string} [strip] what the strip says then */
function mountBuiltIn(strip) {
  const element = /** @type {TodoChat} */ (document.createElement("todo-chat"));
  element.messageChars = config.messageChars;
  follow(element);
  element.setOptions(chatOptions(config, storage.get("todo.thread")));
  byId("sign-out").hidden = config.auth !== "jwt";
  place.replaceChildren(element);
  if (strip) showStrip(strip, config.widget ? { text: "Use OpenAI's widget", href: "?ui=openai" } : undefined);
}

/** @param {TodoChat | OpenAIChatKit} element */
function follow(element) {
  element.addEventListener("chatkit.thread.change", (event) => {
    storage.set("todo.thread", /** @type {CustomEvent} */ (event).detail.threadId);
  });
  element.addEventListener("chatkit.error", (event) => {
    const { error } = /** @type {CustomEvent} */ (event).detail;
    if (error?.name === "HttpError" && error.status === 401 && element.isConnected) void askToSignIn();
  });
}

/** Take everything of the last person off the screen. */
async function askToSignIn() {
  byId("sign-out").hidden = true;
  place.replaceChildren();
  const { showSignIn } = await import("./sign-in.js");
  showSignIn(place, mountBuiltIn);
}

async function leave() {
  const { endSession, forget } = await import("./sign-in.js");
  if (!(await endSession())) return showStrip("You are still signed in: the server cannot be reached.");
  await askToSignIn();
  forget(); // last: the chat keeps the drafts when it is taken off the screen
}

function showNotices() {
  const sentences = [...(config.model.offline ? [OFFLINE] : []), ...(config.auth === "none" ? [UNCHECKED] : [])];
  const notices = /** @type {HTMLDetailsElement} */ (byId("notices"));
  notices.hidden = sentences.length === 0;
  if (config.model.offline) byId("notices-summary").textContent = "Offline model: plain rules, not an AI";
  const spacious = matchMedia("(min-width: 720px)"); // as in style.css: there the sentences are always shown
  notices.open = spacious.matches;
  spacious.addEventListener("change", () => (notices.open = spacious.matches));
  for (const sentence of sentences) {
    notices.append(Object.assign(document.createElement("p"), { textContent: sentence }));
  }
}

/** @param {string} text @param {{text: string, href: string}} [link] */
function showStrip(text, link) {
  const parts = link ? [Object.assign(document.createElement("a"), { textContent: link.text, href: link.href })] : [];
  byId("strip").replaceChildren(Object.assign(document.createElement("span"), { textContent: text }), ...parts);
}

/** @param {string} id @returns {HTMLElement} */
function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no #${id}`);
  return element;
}

// @ts-check
import "./chat/element.js";
import { storage, visit } from "./chat/storage.js";
import { byId, Frame } from "./frame.js";
import { chatOptions } from "./options.js";
/** @import {OpenAIChatKit} from "@openai/chatkit" */
/** @import {TodoChat} from "./chat/element.js" */
/** @import {Config} from "./options.js" */

/** @type {Config} */
const config = JSON.parse(byId("config").textContent ?? "");
const place = byId("chat");
const dark = matchMedia("(prefers-color-scheme: dark)");
const frame = new Frame(config, place);
const BUILT_IN = "Built-in chat";
const SWITCH = { text: "Use OpenAI's widget", href: "?ui=openai" };
const READY = "ready"; // what a visit remembers of a widget that was shown; else why it was not
/** Whether the built-in chat is used, so that nothing may take its place. */
let used = false;

byId("sign-out").addEventListener("click", () => void leave());
byId("calendar").addEventListener("click", async () => (await import("./calendar.js")).showCalendar());
void boot();

async function boot() {
  const known = visit.get("todo.widget");
  if (!config.widget || config.ui === "built-in") return mountBuiltIn(BUILT_IN);
  if (config.ui === "auto" && known && known !== READY) return fallBack(known);
  const atOnce = config.ui === "auto" && !known;
  if (atOnce) mountBuiltIn("Built-in chat. OpenAI's widget is being loaded…");
  else showStrip("Loading OpenAI's widget…");
  for (const sign of ["pointerdown", "keydown", "input"]) place.addEventListener(sign, () => (used = atOnce), { once: true });
  try {
    const { mountWidget, watchWidget } = await import("./openai.js");
    const options = () => chatOptions(config, storage.get("todo.thread"), dark.matches ? "dark" : "light");
    const element = await mountWidget(place, options(), config.ui === "openai" ? 15_000 : 3_000);
    if (used) return keepBuiltIn(element);
    follow(element);
    for (const other of [...place.children]) if (other !== element) other.remove(); // moved, it would load again
    byId("calendar").hidden = false;
    frame.arrange();
    dark.addEventListener("change", () => element.setOptions(options()));
    visit.set("todo.widget", READY);
    showStrip("OpenAI's ChatKit widget", { text: "Use the built-in chat", href: "?ui=built-in" });
    watchWidget(element, (reason) => place.contains(element) || !place.hasChildNodes() ? fallBack(reason) : undefined);
  } catch (error) {
    fallBack(error instanceof Error ? error.message : String(error));
  }
}

/** @param {string} reason */
function fallBack(reason) {
  visit.set("todo.widget", reason);
  const strip = `OpenAI's widget could not be loaded (${reason}), so this is the built-in chat.`;
  if (place.querySelector("todo-chat, .sign-in")) showStrip(strip, SWITCH);
  else mountBuiltIn(strip);
}

/** Somebody is writing already: OpenAI's widget comes too late. @param {OpenAIChatKit} element */
function keepBuiltIn(element) {
  element.remove();
  showStrip(BUILT_IN, SWITCH);
}

/** @param {string} [strip] what the strip says then */
function mountBuiltIn(strip) {
  const element = /** @type {TodoChat} */ (document.createElement("todo-chat"));
  element.messageChars = config.messageChars;
  follow(element);
  element.setOptions(chatOptions(config, storage.get("todo.thread")));
  byId("calendar").hidden = false;
  byId("sign-out").hidden = config.auth !== "jwt";
  place.replaceChildren(element);
  frame.arrange();
  if (strip) showStrip(strip, config.widget ? SWITCH : undefined);
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
  used = true;
  byId("calendar").hidden = byId("sign-out").hidden = true;
  place.replaceChildren();
  frame.arrange();
  const { showSignIn } = await import("./sign-in.js");
  showSignIn(place, mountBuiltIn);
}

async function leave() {
  const { endSession, forget } = await import("./sign-in.js");
  if (!(await endSession())) return showStrip("You are still signed in: the server cannot be reached.");
  await askToSignIn();
  forget(); // last: the chat keeps the drafts when it is taken off the screen
}

/** @param {string} text @param {{text: string, href: string}} [link] */
function showStrip(text, link) {
  const parts = link ? [Object.assign(document.createElement("a"), { textContent: link.text, href: link.href })] : [];
  byId("strip").replaceChildren(Object.assign(document.createElement("span"), { textContent: text }), ...parts);
}

// @ts-check
import "./chat/element.js";
import "./tasks/element.js";
import { storage, visit } from "./chat/storage.js";
import { conversationHere, nameConversation } from "./address.js";
import { byId, Frame } from "./frame.js";
import { chatOptions, fetchFromHere } from "./options.js";
import { Panes } from "./panes.js";
import { Reminders } from "./reminders.js";
import { TEXTS } from "./texts.js";
import { ThemeChoice } from "./theme.js";
/** @import {OpenAIChatKit} from "@openai/chatkit" */
/** @import {TodoChat} from "./chat/element.js" */
/** @import {Config} from "./options.js" */

/** @type {Config} */
const config = JSON.parse(byId("config").textContent ?? "");
const place = byId("chat");
const theme = new ThemeChoice();
const panes = new Panes(byId("tabs"), { tasks: byId("tasks"), chat: place });
const list = {
  show: () => panes.show("tasks"),
  /** @param {number} taskId */
  open(taskId) {
    panes.show("tasks");
    panes.list?.show(taskId);
  },
};
const reminders = new Reminders(fetchFromHere, list.open);
const frame = new Frame(config, theme, {
  remind: async (wanted) => {
    if (!(await reminders.want(wanted))) frame.say(reminders.possible ? TEXTS.remindRefused : TEXTS.remindImpossible);
    frame.remind(reminders.possible ? reminders.wanted : undefined);
  },
  calendar: async () => (await import("./calendar.js")).showCalendar(() => void askToSignIn()),
  memory: async () => (await import("./memory.js")).showMemory({ say: (text) => frame.say(text), unauthorized: () => void askToSignIn() }),
  signOut: () => void leave(),
});
const SWITCH = { text: TEXTS.chats.useWidget, href: "?ui=openai" };
const READY = "ready"; // what a visit remembers of a widget that was shown; else why it was not
/** Whether the built-in chat is used, so that nothing may take its place. */
let used = false;
/** Whether the address names what is not there, and is to be put right. */
let misnamed = false;

addEventListener("popstate", () => void shownChat()?.setThreadId(conversationHere()));
if (conversationHere() && !visit.get("todo.visited")) panes.show("chat"); // who follows a link wants to see what it names
visit.set("todo.visited", "yes");
void boot();

async function boot() {
  const known = visit.get("todo.widget");
  if (!config.widget || config.ui === "built-in") return mountBuiltIn(TEXTS.chats.builtIn);
  if (config.ui === "auto" && known && known !== READY) return fallBack(known);
  const atOnce = config.ui === "auto" && !known;
  if (atOnce) mountBuiltIn(TEXTS.chats.builtInMeanwhile);
  else waitForWidget();
  for (const sign of ["pointerdown", "keydown", "input"]) place.addEventListener(sign, () => (used = atOnce), { once: true });
  try {
    const { mountWidget, watchWidget } = await import("./openai.js");
    const options = () => chatOptions(config, opened(), list, theme.scheme);
    const element = await mountWidget(place, options(), config.ui === "openai" ? 15_000 : 3_000);
    if (used) return keepBuiltIn(element);
    follow(element);
    for (const other of [...place.children]) if (other !== element) other.remove(); // moved, it would load again
    if (!panes.list) enter();
    theme.addEventListener("change", () => element.setOptions(options()));
    visit.set("todo.widget", READY);
    frame.describe(TEXTS.chats.widget, { text: TEXTS.chats.useBuiltIn, href: "?ui=built-in" });
    watchWidget(element, (reason) => place.contains(element) || !place.hasChildNodes() ? fallBack(reason) : undefined);
  } catch (error) {
    fallBack(error instanceof Error ? error.message : String(error));
  }
}

function waitForWidget() {
  enter();
  place.append(Object.assign(document.createElement("p"), { className: "quiet arriving", textContent: TEXTS.chats.loading }));
}

/** @param {string} reason */
function fallBack(reason) {
  visit.set("todo.widget", reason);
  const text = TEXTS.chats.fallBack(reason);
  if (place.querySelector("todo-chat, .sign-in")) frame.describe(text, SWITCH);
  else mountBuiltIn(text);
}

/** Somebody is writing already: OpenAI's widget comes too late. @param {OpenAIChatKit} element */
function keepBuiltIn(element) {
  element.remove();
  frame.describe(TEXTS.chats.builtIn, SWITCH);
}

/** @param {string} [text] which chat it is, said in the badge's explanation */
function mountBuiltIn(text) {
  const element = /** @type {TodoChat} */ (document.createElement("todo-chat"));
  element.messageChars = config.messageChars;
  element.agents = config.agents;
  follow(element);
  element.setOptions(chatOptions(config, opened(), list));
  place.replaceChildren(element);
  if (!panes.list) enter();
  if (text) frame.describe(text, config.widget ? SWITCH : undefined);
}

/** Somebody is there, as far as we know. */
function enter() {
  frame.enter(true);
  panes.openList(fetchFromHere, config.agents?.offered ?? false);
  if (!panes.list) return;
  if (reminders.possible) frame.remind(reminders.wanted);
  reminders.begin();
  panes.list.addEventListener("todo-selection", (event) => {
    const chat = builtIn();
    if (chat) chat.selected = /** @type {CustomEvent} */ (event).detail.tasks;
  });
  panes.list.addEventListener("todo-delegate", (event) => {
    panes.show("chat");
    const text = TEXTS.doTask(/** @type {CustomEvent} */ (event).detail.id);
    void shownChat()?.sendUserMessage({ text, newThread: true, allowAgents: true }); // the widget has no way to say that: it shows the card
  });
  panes.list.addEventListener("todo-unauthorized", ({ target }) => target === panes.list && void askToSignIn());
}

/** What the browser calls this page. @param {string | null} title the conversation's */
function entitle(title) {
  document.title = title ? `${title} · ${TEXTS.name}` : TEXTS.name;
}

/** The conversation to begin with: the one that the address names, else the last. */
function opened() {
  return conversationHere() ?? storage.get("todo.thread");
}

/** @returns {TodoChat | OpenAIChatKit | null} */
function shownChat() {
  return place.querySelector("todo-chat, openai-chatkit:not(.coming)");
}

/** @returns {TodoChat | null} */
const builtIn = () => place.querySelector("todo-chat");

/** @param {TodoChat | OpenAIChatKit} element */
function follow(element) {
  let first = true; // it opens what it was made with
  element.addEventListener("chatkit.thread.change", (event) => {
    const { threadId } = /** @type {CustomEvent} */ (event).detail;
    storage.set("todo.thread", threadId);
    nameConversation(threadId, { instead: misnamed || first });
    misnamed = first = false;
  });
  element.addEventListener("todo.unselect", () => panes.list?.unselect());
  element.addEventListener("todo.title", (event) => entitle(/** @type {CustomEvent} */ (event).detail.title));
  for (const changing of ["chatkit.effect", "chatkit.response.end", "todo.changed"]) {
    element.addEventListener(changing, () => panes.list?.refresh());
  }
  element.addEventListener("chatkit.error", (event) => {
    const { error } = /** @type {CustomEvent} */ (event).detail;
    misnamed = error?.name === "HttpError" && error.status === 404;
    if (error?.name === "HttpError" && error.status === 401 && element.isConnected) void askToSignIn();
  });
}

/** Take everything of the last person off the screen. */
async function askToSignIn() {
  used = true;
  frame.enter(false);
  entitle(null);
  panes.closeList();
  reminders.end();
  place.replaceChildren();
  for (const dialog of document.querySelectorAll("body > dialog")) dialog.remove(); // of their memory or their calendar
  const { showSignIn } = await import("./sign-in.js");
  showSignIn(place, mountBuiltIn);
}

async function leave() {
  const { endSession, forget } = await import("./sign-in.js");
  if (!(await endSession())) return frame.say(TEXTS.stillSignedIn);
  await askToSignIn();
  forget(); // last: the chat keeps the drafts when it is taken off the screen
  nameConversation(null, { instead: true });
}

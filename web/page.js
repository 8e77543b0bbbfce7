// @ts-check
import "./chat/element.js";
import "./tasks/element.js";
import { storage, visit } from "./chat/storage.js";
import { conversationHere, nameConversation, WIDGET } from "./address.js";
import { byId, Frame } from "./frame.js";
import { fetchFromHere } from "./http.js";
import { chatOptions } from "./options.js";
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
    if (!(await reminders.want(wanted))) frame.say(reminders.possible ? TEXTS.remindDenied : TEXTS.remindImpossible);
    frame.remind(reminders.possible ? reminders.wanted : undefined);
  },
  calendar: async () => (await import("./calendar.js")).showCalendar(() => void askToSignIn()),
  memory: async () => (await import("./memory.js")).showMemory({ say: (text) => frame.say(text), unauthorized: () => void askToSignIn() }),
  signOut: () => void leave(),
  loadUsage: async () => {
    const response = await fetch("/usage").catch(() => null);
    return response?.ok ? response.json() : undefined;
  },
});
/** Whether the address bar names a conversation that does not exist. */
let misnamed = false;

addEventListener("popstate", () => void shownChat()?.setThreadId(conversationHere()));
if (conversationHere() && !visit.get("todo.visited")) panes.show("chat"); // a link leads to a conversation
visit.set("todo.visited", "yes");
mountChat();

function mountChat() {
  if (config.domainKey) void mountWidget(config.domainKey);
  else mountBuiltIn();
}

function mountBuiltIn() {
  const element = /** @type {TodoChat} */ (document.createElement("todo-chat"));
  element.messageChars = config.messageChars;
  element.agents = config.agents;
  follow(element);
  element.setOptions(chatOptions(opened(), list));
  place.replaceChildren(element);
  if (!panes.list) enter();
  frame.describe(TEXTS.widget.builtIn, config.hasWidget ? { text: TEXTS.widget.use, href: WIDGET } : undefined);
}

/** Mounts OpenAI's widget, whose script comes from another server. @param {string} domainKey */
async function mountWidget(domainKey) {
  const element = /** @type {OpenAIChatKit} */ (document.createElement("openai-chatkit"));
  const loading = Object.assign(document.createElement("p"), { className: "quiet arriving", textContent: TEXTS.widget.loading });
  place.replaceChildren(loading, element);
  if (!panes.list) enter();
  frame.describe(TEXTS.widget.openai, { text: TEXTS.widget.useBuiltIn, href: "/" });
  const { showWidget, watchWidget } = await import("./widget.js");
  const options = () => chatOptions(opened(), list, { domainKey, colorScheme: theme.scheme });
  follow(element);
  /** @param {string} reason */
  const fail = (reason) => place.contains(element) && showUnavailable(reason); // unless the sign-in form has replaced it
  try {
    await showWidget(element, options());
    theme.addEventListener("change", () => element.setOptions(options()));
    watchWidget(element, fail);
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error));
  }
}

/** @param {string} reason */
function showUnavailable(reason) {
  const link = Object.assign(document.createElement("a"), { className: "button", href: "/", textContent: TEXTS.widget.useBuiltIn });
  const text = Object.assign(document.createElement("p"), { className: "quiet", textContent: TEXTS.widget.unavailable(reason) });
  const box = Object.assign(document.createElement("div"), { className: "arriving" });
  box.append(text, link);
  place.replaceChildren(box);
}

/** Shows the page of a signed-in user. */
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
    void shownChat()?.sendUserMessage({ text, newThread: true, allowAgents: true }); // the widget has no such option and shows the card
  });
  panes.list.addEventListener("todo-unauthorized", ({ target }) => target === panes.list && void askToSignIn());
}

/** Sets the title of the page. @param {string | null} title the conversation's */
function entitle(title) {
  document.title = title ? `${title} · ${TEXTS.name}` : TEXTS.name;
}

/** Returns the conversation in the address bar, else the last one. */
function opened() {
  return conversationHere() ?? storage.get("todo.thread");
}

/** @returns {TodoChat | OpenAIChatKit | null} */
function shownChat() {
  return place.querySelector("todo-chat, openai-chatkit");
}

/** @returns {TodoChat | null} */
const builtIn = () => place.querySelector("todo-chat");

/** @param {TodoChat | OpenAIChatKit} element */
function follow(element) {
  let first = true; // it opens its initial conversation
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

/** Removes everything of the last user from the page. */
async function askToSignIn() {
  frame.enter(false);
  entitle(null);
  panes.closeList();
  reminders.end();
  place.replaceChildren();
  for (const dialog of document.querySelectorAll("body > dialog")) dialog.remove(); // memory and calendar
  const { showSignIn } = await import("./sign-in.js");
  showSignIn(place, mountChat);
}

async function leave() {
  const { endSession, forget } = await import("./sign-in.js");
  if (!(await endSession())) return frame.say(TEXTS.stillSignedIn);
  await askToSignIn();
  forget(); // last, because the chat stores its drafts when it is removed
  nameConversation(null, { instead: true });
}

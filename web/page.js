// @ts-check
import "./tasks/element.js";
import { storage, visit } from "./chat/storage.js";
import { parse, pathBelowBase, WIDGET } from "./address.js";
import { fetchFromHere, loadModule, openedModule, user } from "./http.js";
import { removeBidiControls } from "./words.js";
import { Keyboard } from "./shortcuts.js";
import { opens, Router, shared } from "./router.js";
import { Assistant, linkToToday, showProblem } from "./shell/assistant.js";
import { byId, say } from "./shell/elements.js";
import { Foot, ThemeChoice } from "./shell/foot.js";
import { Panes } from "./shell/panes.js";
import { Header, SideBar } from "./shell/side-bar.js";
import { LIST, TEXTS } from "./texts.js";
import { Unsaved } from "./unsaved.js";
/** @import {OpenAIChatKit} from "@openai/chatkit" */
/** @import {TodoChat} from "./chat/element.js" */
/** @import {Config} from "./options.js" */
/** @import {Session} from "./http.js" */
/** @import {UnshownAlerts} from "./alerts/unshown.js" */
/** @import {TodoTasks} from "./tasks/element.js" */
/** @import {Command} from "./shortcuts.js" */
/** @import {Place} from "./router.js" */
/** @import {View} from "./tasks/types" */

const ASK_AGAIN = 2000; // ms

const loadAccessTokens = openedModule(() => import("./access-tokens.js"));
const loadAlerts = openedModule(() => import("./alerts/dialog.js"));
const loadCalendar = openedModule(() => import("./calendar.js"));
const loadClients = openedModule(() => import("./clients.js"));
const loadDevices = openedModule(() => import("./devices.js"));
const loadPhone = openedModule(() => import("./phone.js"));
const loadMemory = openedModule(() => import("./memory.js"));
const loadPassword = openedModule(() => import("./password-dialog.js"));
const loadProfile = openedModule(() => import("./profile.js"));
const loadSchedules = openedModule(() => import("./schedules.js"));
const loadShortcutSheet = openedModule(() => import("./shortcut-sheet.js"));
const loadSignOut = openedModule(() => Promise.all([import("./sign-in.js"), import("./sign-out.js")]));

/** @type {Config} */
const config = JSON.parse(byId("config").textContent ?? "");
const theme = new ThemeChoice();
const router = new Router(storage.get("todo.thread"), user.last);
const panes = new Panes((pane) => router.paneWent(pane));
const header = new Header(panes);
const sideBar = new SideBar(fetchFromHere, () => {
  panes.show("chat");
  void assistant.builtIn?.showHistory();
});
const list = {
  show: () => panes.show("tasks"),
  /** @param {number} taskId */
  open: (taskId) => router.go({ task: taskId }),
};
const foot = new Foot(config, theme, {
  alerts: () => showAlerts(),
  calendar: () => showDialog(loadCalendar, (module, { unauthorized }) => module.showCalendar(unauthorized)),
  memory: () => showDialog(loadMemory, (module, session) => module.showMemory({ say, ...session })),
  accessTokens: () => showDialog(loadAccessTokens, (module, { unauthorized }) => module.showAccessTokens(unauthorized)),
  profile: () => showDialog(loadProfile, (module, session) => module.showProfile(profileOf(session))),
  phone: () => showDialog(loadPhone, (module, { unauthorized }) => module.showPhone(unauthorized)),
  clients: () => showDialog(loadClients, (module, { unauthorized }) => module.showClients(unauthorized)),
  schedules: () => showDialog(loadSchedules, (module, session) => module.showSchedules({ ...session, open: (conversation) => router.go({ conversation }) })),
  devices: () => showDialog(loadDevices, (module, { unauthorized }) => module.showDevices(unauthorized)),
  password: () => showDialog(loadPassword, (module, session) => module.showPassword({ say, ...session })),
  keys: () => void showKeys(),
  keysChanged: () => keysChanged(),
  signOut: () => void leave(),
  loadUsage: async () => {
    const response = await fetchFromHere("usage").catch(() => null);
    return response?.ok ? response.json() : undefined;
  },
});
/** @param {SignedIn} session */
const profileOf = ({ unauthorized }) => ({
  say,
  unauthorized,
  changed: (/** @type {{name: string}} */ { name }) => foot.call(name),
  saved: () => endQuestion(), // they have seen the zone
});
const assistant = new Assistant(config, { theme, foot, list, follow });
/** What the user has not saved, while one is signed in. @type {Unsaved | null} */
let unsaved = null;
/** Loaded after the list. @type {UnshownAlerts | null} */
let unshown = null;
/** Removes the question for the time zone, if there is one. */
let endQuestion = () => {};
/** What another app has shared, until somebody is signed in. */
let textToShow = shared;
/** Whether the open conversation does not exist. */
let misnamed = false;
/** The title of the open conversation. @type {string | null} */
let conversationTitle = null;

new Keyboard((command, target) => (panes.list ? run(command, panes.list, target) : false));
router.addEventListener("go", (event) => show(/** @type {CustomEvent} */ (event).detail.was));
const opensTask = router.place.opened === "task" && !router.restored; // its sheet is not shown over the assistant
const linked = (opensTask || !visit.get("todo.visited")) && !["", WIDGET].includes(pathBelowBase(location.pathname) ?? "");
if (router.restored || linked) panes.show(router.place.pane);
else router.paneWent(panes.shows("tasks") ? "tasks" : "chat", { replace: true });
visit.set("todo.visited", "yes");
addEventListener("hashchange", () => void offerLink(window.early.takeLink()));
void (window.early.link === null || config.missing ? begin() : offerLink(window.early.link));

/** Opens the page of the user who is signed in: at once if this browser knows who it is. */
async function begin() {
  if (config.missing) {
    document.body.classList.add("alone");
    return showProblem(byId("tasks"), TEXTS.missing.text, linkToToday(TEXTS.missing.link));
  }
  const request = user.ask();
  const known = user.id === null ? await waitForSession(request) : { id: user.id, session: user.session, name: user.name };
  if (!known) return askToSignIn();
  const { id, session } = known;
  if (user.last !== null && user.last !== id) await (await loadModule(() => import("./sign-in.js"))).forget(); // what is stored belongs to another user
  user.set(id, session, known.name);
  void router.enter(id);
  const opened = (unsaved = await Unsaved.open(id, session));
  enter(unsaved);
  if (textToShow) panes.list?.share(textToShow);
  if (textToShow || opens === "add") header.add();
  textToShow = "";
  if (opens === "assistant") panes.show("chat");
  void mountAssistant(unsaved);
  const now = await waitForSession(request);
  if (unsaved !== opened) return; // they have signed out meanwhile
  if (now?.id !== id) return askToSignIn();
  user.set(id, now.session, now.name);
  foot.enter(user.name);
  opened.confirm(now.session);
}

/** Returns who is signed in; asks until the server responds. @param {ReturnType<typeof user.ask>} request @returns {Promise<Session | null>} */
async function waitForSession(request) {
  const now = await request;
  if (now !== undefined) return now;
  await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN));
  return waitForSession(user.ask());
}

/** Shows the assistant, whose modules are loaded after the list, unless the address is of a conversation. @param {Unsaved} of the user */
async function mountAssistant(of) {
  if (router.place.opened !== "conversation") await panes.list?.loaded;
  await assistant.mount(() => {
    const { conversation, opened } = router.place;
    return unsaved === of ? { conversation: config.domainKey ? conversation : lastConversation(of), unsaved: of, takesFocus: opened === "conversation" } : null;
  });
}

/** Shows the page of a signed-in user. @param {Unsaved} of the user */
function enter(of) {
  document.body.classList.remove("alone");
  foot.enter(user.name);
  const tasks = panes.openList({ fetch: fetchFromHere, agents: config.agents?.offered ?? false, unsaved: of, place: router.place });
  sideBar.follow(tasks, user.id);
  void tasks.loaded.then(beginBackgroundWork);
  header.showQuery();
  entitle();
  tasks.addEventListener("todo-place", (event) => {
    const { place, replace } = /** @type {CustomEvent} */ (event).detail;
    router.listWent(place, { replace });
    header.showQuery();
    entitle();
  });
  tasks.addEventListener("todo-selection", (event) => {
    const chat = assistant.builtIn;
    if (chat) chat.selected = /** @type {CustomEvent} */ (event).detail.tasks;
  });
  tasks.addEventListener("todo-delegate", (event) => {
    panes.show("chat");
    const text = TEXTS.doTask(/** @type {CustomEvent} */ (event).detail.id);
    void assistant.element?.sendUserMessage({ text, newThread: true, allowAgents: true }); // the widget has no such option and shows the card
  });
  tasks.addEventListener("todo-notifications", () => void showAlerts());
  tasks.addEventListener("todo-unauthorized", ({ target }) => target === panes.list && void askToSignIn());
}

/** Stores the page for use without a connection, and shows what is due, if the user has notifications on. */
async function beginBackgroundWork() {
  const modules = await Promise.all([import("./alerts/unshown.js"), import("./offline.js"), import("./profile.js")]).catch(() => null);
  if (!modules || !panes.list) return; // the server cannot be reached, or they have signed out meanwhile
  const [{ UnshownAlerts }, { openOffline }, { followProfile }] = modules;
  unshown ??= new UnshownAlerts({ send: fetchFromHere, open: openAddress, snoozed });
  void askForZone(followProfile);
  await openOffline(openAddress, snoozed);
  if (panes.list) await unshown.begin();
}

/** Shows what a notification is about. @param {URL} address which the server may have made with another name of its own */
const openAddress = (address) => router.go(parse(address) ?? { view: "today" });

const snoozed = () => panes.list?.reload();

/** Shows the name of the profile, and asks for the time zone if this device is in another one. @param {typeof import("./profile.js").followProfile} followProfile */
async function askForZone(followProfile) {
  const of = unsaved;
  if (!of) return;
  endQuestion = await followProfile(profileOf(sessionOf(of)));
  if (unsaved !== of) endQuestion(); // they have signed out meanwhile
}

/** Shows the place of the router. @param {Place} was the place before */
function show(was) {
  const { place } = router;
  panes.show(place.pane);
  panes.list?.setPlace(place);
  header.showQuery(place.filter.query, true);
  if (place.conversation !== was.conversation) void assistant.element?.setThreadId(place.conversation);
  entitle();
}

/** Runs a command of the keyboard; returns false if there is nothing to do. @param {Command} command @param {TodoTasks} tasks @param {HTMLElement} target what has the focus */
function run(command, tasks, target) {
  /** @type {Partial<Record<Command, () => void>>} */
  const commands = {
    add: () => header.add(),
    search: () => header.search(),
    assistant: () => {
      panes.show("chat");
      assistant.focus();
    },
    undo: () => tasks.undo(),
    redo: () => tasks.redo(),
    keys: () => void showKeys(),
  };
  if (command in LIST.views) return router.go({ view: /** @type {View} */ (command) });
  const act = commands[command];
  return act ? act() : tasks.perform(command, target);
}

const showKeys = async () => (await loadShortcutSheet())?.showShortcuts(keysChanged);

/** Shows the keys that are on. */
function keysChanged() {
  foot.draw();
  header.showKeys();
  panes.list?.refresh();
}

/** Sets the title of the page: that of what was opened last. */
function entitle() {
  const { opened, view, filter } = router.place;
  const viewTitle = [LIST.views[view ?? "today"], filter.label && `#${filter.label}`].filter(Boolean).join(" ");
  const titles = { view: viewTitle, task: panes.list?.taskTitle, conversation: conversationTitle };
  const title = panes.list && titles[opened];
  document.title = title ? `${removeBidiControls(title)} · ${TEXTS.name}` : TEXTS.name;
}

/** Returns the conversation to open: the last one, unless this tab has an unsent message of a new one. @param {Unsaved} of the user */
function lastConversation(of) {
  const { opened, conversation } = router.place;
  const begun = of.get("draft/new") || of.rows("message/").some(({ value }) => value.conversation === null);
  return begun && opened !== "conversation" ? null : conversation;
}

/** @param {TodoChat | OpenAIChatKit} element */
function follow(element) {
  element.addEventListener("chatkit.thread.change", (event) => {
    const { threadId } = /** @type {CustomEvent} */ (event).detail;
    storage.set("todo.thread", threadId);
    sideBar.conversation = threadId;
    panes.empty = threadId === null;
    router.chatWent(threadId, { replace: misnamed });
    misnamed = false;
    entitle();
  });
  element.addEventListener("todo.unselect", () => panes.list?.unselect());
  element.addEventListener("todo.history", (event) => {
    const { threads, times } = /** @type {CustomEvent} */ (event).detail;
    sideBar.showConversations(threads, times);
  });
  element.addEventListener("todo.title", (event) => {
    conversationTitle = /** @type {CustomEvent} */ (event).detail.title;
    entitle();
  });
  for (const changing of ["chatkit.effect", "chatkit.response.end", "todo.changed"]) {
    element.addEventListener(changing, () => panes.list?.refresh());
  }
  element.addEventListener("chatkit.error", (event) => {
    const { error } = /** @type {CustomEvent} */ (event).detail;
    misnamed = error?.name === "HttpError" && error.status === 404;
    if (error?.name === "HttpError" && error.status === 401 && element.isConnected) void askToSignIn();
  });
}

/** Asks whether this browser shall use the tasks of whoever made a link. @param {string | null} code */
async function offerLink(code) {
  if (code === null) return;
  window.early.session = window.early.page = null; // their responses are of nobody, or of another user
  await clear();
  const { offerTasks } = await loadModule(() => import("./taken-link.js"));
  offerTasks(byId("tasks"), code, begin);
}

/** What is done in one session. @typedef {{unsaved: Unsaved, unauthorized: () => void}} SignedIn */

/** Returns a session; a request of it that is rejected after its end does not end the next one. @param {Unsaved} of the user @returns {SignedIn} */
const sessionOf = (of) => ({ unsaved: of, unauthorized: () => void (unsaved === of && askToSignIn()) });

/** Shows a dialog of the user, unless they have signed out while its module was loaded. @template T @param {() => Promise<T | null>} load @param {(module: T, session: SignedIn) => unknown} show */
async function showDialog(load, show) {
  const of = unsaved;
  const module = await load();
  if (module && of && unsaved === of) show(module, sessionOf(of));
}

const showAlerts = () =>
  showDialog(loadAlerts, (module, { unauthorized }) => module.showNotifications({ unauthorized, changed: () => void unshown?.begin() }));

async function askToSignIn() {
  await clear();
  await showSignInForm();
}

async function showSignInForm() {
  if (config.auth === "none") {
    const { showNotLinked } = await loadModule(() => import("./taken-link.js"));
    return showNotLinked(byId("tasks"));
  }
  const { showSignIn } = await loadModule(() => import("./sign-in.js"));
  showSignIn(byId("tasks"), begin, config);
}

/** Removes everything of the last user from the page. */
async function clear() {
  document.body.classList.add("alone");
  foot.enter(null);
  conversationTitle = null;
  user.forget();
  panes.closeList();
  entitle();
  sideBar.follow(null, null);
  sideBar.close();
  unshown?.end();
  endQuestion();
  assistant.remove();
  for (const dialog of document.querySelectorAll("body > dialog")) dialog.remove(); // all are of the user
  const closing = unsaved;
  unsaved = null;
  await closing?.close(); // after the list and the chat, which have stored what was typed
}

async function leave() {
  const modules = await loadSignOut();
  if (!modules) return;
  const [{ endSession, forget }, { askBeforeSignOut }] = modules;
  const choice = unsaved ? await askBeforeSignOut(unsaved, () => panes.list?.sendUnsaved()) : "leave";
  if (choice === "cancel") return;
  const { ended, hasOther, continueAt } = await endSession();
  if (!ended) return say(TEXTS.stillSignedIn);
  if (choice === "discard") await unsaved?.discard();
  await clear();
  try {
    if (!hasOther) await forget(); // after the chat, which stores its drafts when it is removed
  } finally {
    await router.enter(null);
    await showSignInForm(); // the next user begins where nothing is left of the last
  }
  if (continueAt !== null) location.assign(continueAt);
}

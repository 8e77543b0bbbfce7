// @ts-check
import { storage } from "./chat/storage.js";
import { say } from "./shell/elements.js";
import { TEXTS } from "./texts.js";

const KEY = "todo.person";
const LAST = "todo.person.last";
const SESSION = "todo.session";
const NAME = "todo.person.name";

/** The event of the window after each request that succeeded. */
export const REACHED = "todo.reached";

/** The user, the id of the session and the name of the account; null without them. @typedef {{id: string, session: string | null, name: string | null}} Session */

/** Who uses this page. Its requests name the user, and are rejected in a session of another one. */
export const user = {
  /** @returns {string | null} null: nobody is signed in, or it is not known yet */
  get id() {
    return storage.get(KEY);
  },

  /** Asks the server; undefined if it does not respond. @returns {Promise<Session | null | undefined>} null: nobody is signed in */
  async ask() {
    const early = window.early.session;
    window.early.session = null;
    const response = await (early ?? fetch("session", { cache: "no-store" })).catch(() => null);
    if (response?.status === 401) return null;
    if (!response?.ok) return undefined;
    const { user_id: id, session_id: session, name } = await response.json();
    return { id, session, name };
  },

  /** How the user is called. */
  get name() {
    return storage.get(NAME) ?? this.id;
  },

  /** The id of the last known session. */
  get session() {
    return storage.get(SESSION);
  },

  /** Whoever was signed in last. */
  get last() {
    return storage.get(LAST);
  },

  /** Whether the browser's storage still names this user: another tab may have signed out. @param {string} id */
  isStored(id) {
    return storage.stored(KEY) === id;
  },

  /** @param {string} id @param {string | null} [session] @param {string | null} [name] where the id is none */
  set(id, session = null, name = null) {
    storage.set(KEY, id);
    storage.set(NAME, name);
    storage.set(SESSION, session);
    storage.set(LAST, id);
  },

  /** Nobody is signed in any more; another tab may have stored the next user, who stays in the browser's storage. */
  forget() {
    const isStored = [KEY, SESSION].every((key) => storage.stored(key) === storage.get(key));
    for (const key of [KEY, NAME, SESSION]) storage.forget(key, isStored);
  },
};

/**
 * Sends a request with the user's time zone, for dates such as today, and with the id of the user, so that it does nothing
 * in the session of another one, who has signed in meanwhile. Without a time zone, the server uses its own. Dispatches `REACHED`.
 * @type {typeof fetch}
 */
export async function fetchFromHere(input, init) {
  const { early } = window;
  const { page } = early;
  if (String(input).startsWith("tasks?")) early.page = null; // a later request needs a newer response
  if (page && page.path === input && early.user === user.id) return page.response;
  const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
  for (const [name, value] of early.headersOf(user.id)) headers.set(name, value);
  const response = await fetch(input, { ...init, headers });
  if (response.ok) dispatchEvent(new Event(REACHED));
  return response;
}

const LOAD_AGAIN = 2000; // ms

/** Raises an error if the server cannot be reached: Chromium never again imports a module that it failed to load once. */
async function reachServer() {
  const response = await fetch(import.meta.url, { cache: "no-store" });
  if (!response.ok) throw new Error(response.statusText);
}

/** Loads a module, again until the server can be reached. @template T @param {() => Promise<T>} load @param {() => void} [failed] @returns {Promise<T>} */
export async function loadModule(load, failed = () => {}) {
  try {
    await reachServer();
    return await load();
  } catch {
    failed();
    await new Promise((resolve) => setTimeout(resolve, LOAD_AGAIN));
    return loadModule(load, failed);
  }
}

/** Returns a function that loads the module of what the user opens; it says why it cannot, and then returns null. @template T @param {() => Promise<T>} load */
export function openedModule(load) {
  /** @type {T | null} */
  let module = null;
  return async () => {
    try {
      if (module === null) await reachServer();
      module ??= await load();
    } catch {
      say(TEXTS.notOpened);
    }
    return module;
  };
}

/** Returns an idempotency key. `randomUUID` needs https or localhost. */
export const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

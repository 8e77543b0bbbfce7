// @ts-check
import { databaseName, done, openDatabase, read, result, rowsOf, write } from "./database.js";
import { newKey } from "./http.js";

const STORE = "unsaved";
const TAB = "todo.tab";
const PAUSE = 100; // ms between two times at which changes are stored
const ANSWER = 250; // ms in which an open tab answers
const FAR = 8 * 24 * 3600 * 1000; // ms in the future: what a wrong clock made there is not sent without asking

/** What a tab has of a user. `at` is when it was made, in ms, but after the older ones of its kind; `session` is in which session. @typedef {{user: string, tab: string, key: string, value: any, at: number, session?: string | null}} Row */
/** `left`: the id of a tab, with whose rows another one has worked. @typedef {{user: string, tab: string, asks?: boolean, discarded?: boolean, left?: string}} Message */

/**
 * What a user has typed or changed and the server has not confirmed. It survives reloads, crashes and sign-outs, and is
 * neither shown nor sent while another user is signed in. Reads are from memory; a change is stored at once, and at most
 * 100 ms after another one: what a page stores when it is closed is sometimes lost.
 *
 * Each row belongs to one tab. Rows of closed tabs are taken over shortly after opening, unless this tab has one with
 * the same key; then the event `change` says that something is to be read again.
 *
 * What cannot be stored stays in memory and is tried again with the next change. Then the browser asks before the page is left.
 *
 * Whoever uses the browser can write such rows for another user. So a change or message is sent by itself only in the session
 * in which it was made, whose id the server gives once this user is signed in; the user is asked about others.
 */
export class Unsaved extends EventTarget {
  /** @type {Map<string, Row>} */
  #rows = new Map();
  /** Keys that are to be stored or deleted. @type {Set<string>} */
  #dirty = new Set();
  /** Keys that were changed since this page was opened. @type {Set<string>} */
  #changed = new Set();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #lastStored = -PAUSE;
  #storing = Promise.resolve();
  /** Other open tabs of this user. @type {Set<string>} */
  #tabs = new Set();
  #channel = new BroadcastChannel(`${databaseName()}.unsaved`);
  #tab = sessionId();
  #closed = new AbortController();
  #database;
  /** Whether rows are stored at all. */
  #lasting = false;
  /** Whether the last change could not be stored. */
  #failed = false;
  #session;
  /** Whether the server has said that this is the session. */
  isConfirmed;

  /** @param {string} user @param {IDBDatabase | null} database null: everything stays in memory @param {string | null} [session] the last known one */
  constructor(user, database, session = null) {
    super();
    this.user = user;
    this.#database = database;
    this.#session = session;
    this.isConfirmed = database === null;
    this.#channel.onmessage = ({ data }) => this.#receive(data);
    const { signal } = this.#closed;
    const leave = () => void this.flush();
    addEventListener("pagehide", leave, { signal });
    document.addEventListener("visibilitychange", leave, { signal });
    addEventListener("beforeunload", (event) => this.#failed && this.#rows.size > 0 && event.preventDefault(), { signal });
    const wake = () => void this.#readAgain().catch(() => {}); // without the database, memory has everything
    addEventListener("pageshow", ({ persisted }) => persisted && wake(), { signal });
    document.addEventListener("resume", wake, { signal });
  }

  /** Opens what this tab has of a user. @param {string} user @param {string | null} session the last known one */
  static async open(user, session) {
    const database = await openDatabase((late) => void unsaved.#takeLate(late).catch(() => {}));
    const unsaved = new Unsaved(user, database, session);
    unsaved.#lasting = true;
    unsaved.#failed = database === null;
    for (const row of await unsaved.#load().catch(() => [])) if (row.tab === unsaved.#tab) unsaved.#rows.set(row.key, row);
    unsaved.#post({ asks: true });
    setTimeout(() => void unsaved.#takeOver().catch(() => {}), ANSWER);
    return unsaved;
  }

  /** Reads and stores everything in a database that was opened after the page had begun without. @param {IDBDatabase} database */
  async #takeLate(database) {
    if (this.#database || this.#closed.signal.aborted) return database.close();
    this.#database = database;
    for (const row of await this.#load()) if (row.tab === this.#tab && !this.#changed.has(row.key)) this.#rows.set(row.key, row);
    this.dispatchEvent(new Event("change"));
    this.#storeSoon(this.#changed);
    await this.#takeOver();
  }

  /** Says in which session the user is. @param {string | null} session null without sign-in */
  confirm(session) {
    this.#session = session;
    this.isConfirmed = true;
    this.dispatchEvent(new Event("change"));
  }

  /** Whether a row was made in this session, or approved in it. @param {Row | undefined} row */
  isOfSession(row) {
    return row !== undefined && (row.session ?? null) === this.#session;
  }

  /** Whether there is a row of an earlier session. @param {string} key */
  isEarlier(key) {
    const row = this.#rows.get(key);
    return row !== undefined && !this.isOfSession(row);
  }

  /** The user approves a row of an earlier session. @param {string} key */
  trust(key) {
    const row = this.#rows.get(key);
    if (row) this.#rows.set(key, { ...row, session: this.#session });
    this.#storeSoon([key]);
  }

  /** @param {string} key @returns {any} undefined: there is nothing */
  get(key) {
    return this.#rows.get(key)?.value;
  }

  /** Sets a value, which must be JSON. @param {string} key @param {unknown} value undefined, null or an empty text: deletes it @param {string | null} [made] the session in which it was made */
  set(key, value, made = this.#session) {
    if (value === undefined || value === null || value === "") this.#rows.delete(key);
    else {
      const { at = this.#now(key), session = made } = this.#rows.get(key) ?? {};
      this.#rows.set(key, { user: this.user, tab: this.#tab, key, value, at, session });
    }
    this.#changed.add(key);
    this.#storeSoon([key]);
  }

  /** @param {string} key */
  delete(key) {
    this.set(key, undefined);
  }

  /** Returns the rows whose keys begin with this prefix, the oldest first. @param {string} prefix */
  rows(prefix) {
    return [...this.#rows.values()].filter(({ key }) => key.startsWith(prefix)).sort((one, other) => one.at - other.at);
  }

  /** Returns all rows of the user, also those of other tabs. @returns {Promise<Row[]>} */
  async all() {
    await this.flush();
    const stored = await this.#load().catch(() => []);
    return [...stored.filter(({ tab }) => tab !== this.#tab), ...this.#rows.values()];
  }

  /** Returns the time, after the rows of this kind, even if the clock was set back. @param {string} key */
  #now(key) {
    const now = Date.now();
    const newest = this.rows(key.slice(0, key.indexOf("/") + 1) || key).findLast(({ at }) => at < now + FAR);
    return Math.max(now, newest ? newest.at + 1 : 0);
  }

  /** @param {Iterable<string>} keys */
  #storeSoon(keys) {
    for (const key of keys) this.#dirty.add(key);
    const pause = this.#lastStored + PAUSE - performance.now();
    this.#timer ??= setTimeout(() => void this.flush(), Math.max(pause, 0)); // also while the user types on
  }

  /** Stores what has changed once the caller is done: a change together with the removal of its text, so that no crash leaves both. */
  async flushSoon() {
    await null;
    await this.flush();
  }

  /** Stores what has changed. */
  flush() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const keys = [...this.#dirty];
    if (keys.length === 0 || !this.#lasting) return this.#storing;
    this.#dirty.clear();
    this.#lastStored = performance.now();
    const putAll = (/** @type {IDBObjectStore} */ store) => {
      for (const key of keys) {
        const row = this.#rows.get(key);
        if (row) store.put(row);
        else store.delete([this.user, this.#tab, key]);
      }
    };
    this.#storing = this.#write(putAll).then(
      () => void (this.#failed = false),
      () => {
        this.#failed = true; // the disk is full, or there is no database
        for (const key of keys) this.#dirty.add(key);
      },
    );
    return this.#storing;
  }

  /** Writes; opens the database again if it was missing, or closed by the browser or for a page of a later release. @param {(store: IDBObjectStore) => void} work */
  async #write(work) {
    const database = this.#database;
    try {
      if (database) return await write(database, STORE, work);
    } catch (error) {
      if (/** @type {DOMException} */ (error).name !== "InvalidStateError") throw error;
    }
    const opened = await openDatabase();
    if (!opened) throw new Error("there is no database");
    if (this.#database !== database || this.#closed.signal.aborted) opened.close(); // it is open by now, or not needed
    else this.#database = opened;
    if (!this.#database) throw new Error("the rows are not used any more");
    await write(this.#database, STORE, work);
    this.#storeSoon(this.#rows.keys()); // those that were stored before may be gone
  }

  /** Deletes everything of the user, in all tabs. */
  async discard() {
    this.#forget();
    this.#post({ discarded: true });
    if (this.#lasting) await this.#write((store) => store.delete(rowsOf(this.user))).catch(() => {});
  }

  /** Ends the use of the rows, which stay stored. */
  async close() {
    await this.flush();
    this.#closed.abort();
    this.#channel.close();
    this.#rows.clear();
    this.#database?.close();
    this.#database = null;
  }

  #forget() {
    this.#rows.clear();
    this.#dirty.clear();
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** @returns {Promise<Row[]>} */
  async #load() {
    return this.#database ? read(this.#database, STORE, (store) => store.getAll(rowsOf(this.user))) : [];
  }

  /** Reads the rows of this tab again after a sleep, in which another page may have sent them or taken them over. */
  async #readAgain() {
    this.#changed = new Set(this.#dirty);
    this.#post({ asks: true });
    if (!this.#database) return;
    const stored = await this.#load();
    for (const key of [...this.#rows.keys()]) if (!this.#dirty.has(key)) this.#rows.delete(key);
    for (const row of stored) if (row.tab === this.#tab && !this.#dirty.has(row.key)) this.#rows.set(row.key, row);
    this.dispatchEvent(new Event("change"));
  }

  /** Takes over the rows of tabs that are closed, the newest of each key. */
  async #takeOver() {
    const database = this.#database;
    const isOrphan = (/** @type {Row} */ { tab }) => tab !== this.#tab && !this.#tabs.has(tab);
    if (!database || this.#closed.signal.aborted || !(await this.#load()).some(isOrphan)) return;
    if (this.#database !== database) return; // it was closed meanwhile
    const transaction = database.transaction(STORE, "readwrite"); // only one of two tabs finds a row
    const store = transaction.objectStore(STORE);
    const found = await result(store.getAll(rowsOf(this.user)));
    /** @type {Row[]} */
    const taken = [];
    for (const row of found.filter(isOrphan).sort((one, other) => other.at - one.at)) {
      if (this.#rows.has(row.key)) continue;
      store.delete([row.user, row.tab, row.key]);
      const own = { ...row, tab: this.#tab };
      store.put(own);
      this.#rows.set(row.key, own);
      taken.push(own);
    }
    if (taken.length > 0) this.dispatchEvent(new Event("change")); // at once: the next key would replace a text that is not shown yet
    await done(transaction).catch(() => this.#storeSoon(taken.map(({ key }) => key)));
  }

  /** @param {Partial<Message>} message */
  #post(message) {
    this.#channel.postMessage({ user: this.user, tab: this.#tab, ...message });
  }

  /** @param {Message} message */
  #receive({ user, tab, asks, discarded, left }) {
    if (user !== this.user) return;
    if (discarded) {
      this.#forget();
      return void this.dispatchEvent(new Event("change"));
    }
    if (left === this.#tab) void this.#storeAll();
    if (tab !== this.#tab) this.#tabs.add(tab);
    if (asks) this.#post({});
    else if (tab === this.#tab) this.#renew();
  }

  /** Stores the rows of this tab, and nothing else under its id, after a duplicate has written there. */
  async #storeAll() {
    const stored = await this.#load().catch(() => []);
    this.#storeSoon([...stored.filter(({ tab }) => tab === this.#tab).map(({ key }) => key), ...this.#rows.keys()]);
  }

  /** Takes another id, because this tab is a duplicate of an open one, which has the rows, but for what was typed here. */
  #renew() {
    const left = this.#tab;
    this.#tabs.add(left);
    this.#tab = sessionId(newKey());
    const own = [...this.#rows.values()].filter(({ key }) => this.#changed.has(key));
    this.#forget();
    for (const row of own) this.#rows.set(row.key, { ...row, tab: this.#tab });
    this.#storeSoon(this.#rows.keys());
    this.#post({ left });
    this.dispatchEvent(new Event("change"));
  }
}

/** Returns the id of this tab, which survives reloads. @param {string} [id] a new one */
function sessionId(id) {
  try {
    const known = id ?? sessionStorage.getItem(TAB) ?? newKey();
    sessionStorage.setItem(TAB, known);
    return known;
  } catch {
    return id ?? newKey(); // storage is blocked
  }
}

// @ts-check
import { user } from "./http.js";

/** The stores of this browser's database and their keys. `unsaved` has what is not saved yet, `lists` what was seen last. */
const STORES = { unsaved: ["user", "tab", "key"], lists: ["user", "name"] };
const VERSION = 1;
const OPENING = 3000; // ms, after which the browser, or an upgrade in another tab, does not answer

/** Names the database of this installation: others may be below other paths of the host. */
export function databaseName() {
  const { pathname } = new URL(document.baseURI);
  return pathname === "/" ? "todo" : `todo ${pathname}`;
}

/** Takes a database that was opened after `OPENING`. @typedef {(database: IDBDatabase) => void} TakeLate */

/** Opens the database; null where the browser has none, as in some private windows. @param {TakeLate} [takeLate] @returns {Promise<IDBDatabase | null>} */
export async function openDatabase(takeLate = (database) => database.close()) {
  try {
    return await open(takeLate, VERSION);
  } catch (error) {
    const isNewer = /** @type {Error} */ (error).name === "VersionError"; // of a later release, which was replaced by this one again
    return isNewer ? open(takeLate).catch(() => null) : null;
  }
}

/** @param {TakeLate} takeLate @param {number} [version] the present one @returns {Promise<IDBDatabase>} */
function open(takeLate, version) {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(databaseName(), version);
    let isLate = false;
    const giveUp = () => {
      isLate = true;
      reject((request.readyState === "done" && request.error) || new Error("the database cannot be opened"));
    };
    request.onupgradeneeded = () => {
      for (const [name, keyPath] of Object.entries(STORES)) request.result.createObjectStore(name, { keyPath });
    };
    request.onsuccess = () => {
      const { result: database } = request;
      database.onversionchange = () => database.close();
      if (Object.keys(STORES).every((name) => database.objectStoreNames.contains(name))) return isLate ? takeLate(database) : resolve(database);
      database.close();
      giveUp();
    };
    request.onerror = request.onblocked = giveUp;
    setTimeout(giveUp, OPENING);
  });
}

/** All keys of a user's rows: arrays sort after texts. @param {string} user */
export const rowsOf = (user) => IDBKeyRange.bound([user], [user, []]);

/** Resolves with the result of a request. @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
export const result = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Resolves once everything in a transaction is stored. @param {IDBTransaction} transaction @returns {Promise<void>} */
export const done = (transaction) =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = transaction.onerror = () => reject(transaction.error);
  });

/** Resolves with what is read. @template T @param {IDBDatabase} database @param {string} name @param {(store: IDBObjectStore) => IDBRequest<T>} work */
export const read = async (database, name, work) => result(work(database.transaction(name).objectStore(name)));

/** Resolves once everything is stored. @param {IDBDatabase} database @param {string} name @param {(store: IDBObjectStore) => void} work */
export async function write(database, name, work) {
  const transaction = database.transaction(name, "readwrite");
  work(transaction.objectStore(name));
  transaction.commit(); // a page that is closing gets no further events
  await done(transaction);
}

const LISTS = "lists";

/** What a user saw last, by name: it is shown until the server answers. Without storage there is nothing. */
export class LastSeen {
  #user;
  #database = openDatabase();

  /** @param {string} user */
  constructor(user) {
    this.#user = user;
  }

  /** @param {string} name @returns {Promise<any>} null: there is nothing */
  async get(name) {
    const database = await this.#database;
    const row = database && (await read(database, LISTS, (store) => store.get([this.#user, name])).catch(() => null));
    return row?.value ?? null;
  }

  /** @param {string} name @param {unknown} value which must be JSON */
  async set(name, value) {
    const database = await this.#database;
    if (database) await this.#put(database, name, value).catch(() => {}); // the disk is full
  }

  /** Stores a value, unless the user has signed out in another tab, which forgets first who they are, and then the lists. @param {IDBDatabase} database @param {string} name @param {unknown} value */
  async #put(database, name, value) {
    const transaction = database.transaction(LISTS, "readwrite");
    const store = transaction.objectStore(LISTS);
    // The first response comes when the transactions before have ended: if one has deleted the lists, the user is forgotten by now.
    store.count().onsuccess = () => user.isStored(this.#user) && store.put({ user: this.#user, name, value });
    await done(transaction);
  }

  async close() {
    const database = this.#database;
    this.#database = Promise.resolve(null);
    (await database)?.close();
  }

  /** Deletes what all users of this browser saw. */
  static async deleteAll() {
    const database = await openDatabase();
    if (database) await write(database, LISTS, (store) => store.clear()).catch(() => {});
    database?.close();
  }
}

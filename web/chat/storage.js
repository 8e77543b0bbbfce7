// @ts-check

/** Stores values in the browser's storage, or in memory if that is blocked. */
class Storage {
  /** Wins over the storage, which may be full or changed by another tab. @type {Map<string, string | null>} */
  #memory = new Map();
  #place;

  /** @param {() => globalThis.Storage} place */
  constructor(place = () => localStorage) {
    this.#place = place;
  }

  /** @param {string} key */
  get(key) {
    const known = this.#memory.get(key);
    if (known !== undefined) return known;
    const stored = this.#attempt((all) => all.getItem(key)) ?? null;
    this.#memory.set(key, stored);
    return stored;
  }

  /** Returns what is stored now, perhaps by another tab. @param {string} key */
  stored(key) {
    return this.#attempt((all) => all.getItem(key)) ?? null;
  }

  /** @param {string} key @param {string | null} value null or empty: forget it */
  set(key, value) {
    this.#memory.set(key, value || null);
    this.#attempt((all) => (value ? all.setItem(key, value) : all.removeItem(key)));
  }

  /** Forgets a value in this tab, and in the browser's storage if it is to be `removed`. @param {string} key @param {boolean} removed */
  forget(key, removed) {
    this.#memory.set(key, null);
    if (removed) this.#attempt((all) => all.removeItem(key));
  }

  /** Returns the stored keys with this prefix. @param {string} prefix */
  keys(prefix) {
    return this.#attempt((all) => Object.keys(all).filter((key) => key.startsWith(prefix))) ?? [];
  }

  /** Removes all keys with this prefix. @param {string} prefix */
  clear(prefix) {
    this.#memory.clear();
    this.#attempt((all) => Object.keys(all).forEach((key) => key.startsWith(prefix) && all.removeItem(key)));
  }

  /** @template T @param {(all: globalThis.Storage) => T} work */
  #attempt(work) {
    try {
      return work(this.#place());
    } catch {
      return undefined; // blocked or full
    }
  }
}

export const storage = new Storage();

/** Values that are stored as long as the tab is open. */
export const visit = new Storage(() => sessionStorage);

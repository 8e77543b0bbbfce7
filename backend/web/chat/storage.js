// @ts-check

/** The browser's storage for this page; where it is blocked, things are remembered until the page is closed. */
class Storage {
  /** @type {Map<string, string>} */
  #memory = new Map();

  /** @param {string} key */
  get(key) {
    try {
      return localStorage.getItem(key);
    } catch {
      return this.#memory.get(key) ?? null;
    }
  }

  /** @param {string} key @param {string | null} value null or empty: forget it */
  set(key, value) {
    try {
      if (value) localStorage.setItem(key, value);
      else localStorage.removeItem(key);
    } catch {
      this.#memory.set(key, value ?? "");
    }
  }

  /** Forget what belongs to one person: everything whose key begins so. @param {string} prefix */
  clear(prefix) {
    this.#memory.clear();
    try {
      for (const key of Object.keys(localStorage)) if (key.startsWith(prefix)) localStorage.removeItem(key);
    } catch {
      // blocked: there was nothing but the memory
    }
  }
}

export const storage = new Storage();

/** The unsent text of a conversation. @param {string | null} threadId null: of the conversation that is not begun yet */
const key = (threadId) => `todo.draft.${threadId ?? "new"}`;

export const drafts = {
  /** @param {string | null} threadId */
  get: (threadId) => storage.get(key(threadId)) ?? "",

  /** @param {string | null} threadId @param {string} text */
  set: (threadId, text) => storage.set(key(threadId), text),

  /** Put a text before what was written since. @param {string | null} threadId @param {string} text */
  giveBack(threadId, text) {
    const written = drafts.get(threadId);
    drafts.set(threadId, written ? `${text}\n\n${written}` : text);
  },
};

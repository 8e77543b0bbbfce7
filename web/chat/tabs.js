// @ts-check
const LOCK = "todo.answering.";

/**
 * The other tabs of this browser: what they change, and where they are answered. An answering tab holds a lock, so that
 * one that dies frees its conversation; where the browser gives no locks (plain http), tabs only tell each other.
 */
export class Tabs {
  /** Conversations that are answered in other tabs. @type {Set<string>} */
  answering = new Set();
  /** What ends the answers of this tab. @type {Map<string, () => void>} */
  #own = new Map();
  #channel = new BroadcastChannel("todo");
  #closed = false;
  #heard;

  /** @param {(thread: string, ended: boolean) => void} heard a conversation has changed; `ended`: its answer has */
  constructor(heard) {
    this.#heard = heard;
    this.#channel.onmessage = ({ data }) => this.#receive(data);
    void this.#look();
  }

  /** @param {string | null} thread it has changed here */
  tell(thread) {
    if (thread && !this.#closed) this.#channel.postMessage({ thread });
  }

  /** @param {string | null} thread it is answered here from now on */
  begin(thread) {
    if (!thread || this.#own.has(thread) || this.#closed) return;
    const told = () => this.#channel.postMessage({ thread, answering: true });
    /** @type {Promise<void>} */
    const ended = new Promise((resolve) => this.#own.set(thread, resolve));
    if (!navigator.locks) return told();
    void navigator.locks.request(LOCK + thread, () => {
      if (this.#own.has(thread)) told();
      return ended;
    });
  }

  /** @param {string | null} thread */
  end(thread) {
    const end = thread && this.#own.get(thread);
    if (!end) return;
    this.#own.delete(thread);
    end();
    this.#channel.postMessage({ thread, answering: false });
  }

  /** This tab is left: no other one has to wait for its answers. */
  leave() {
    for (const thread of [...this.#own.keys()]) this.end(thread);
  }

  close() {
    this.leave();
    this.#closed = true;
    this.#channel.close();
  }

  /** Which conversations are answered already. */
  async #look() {
    const { held = [] } = (await navigator.locks?.query()) ?? {};
    for (const { name } of held) {
      if (name?.startsWith(LOCK)) this.#receive({ thread: name.slice(LOCK.length), answering: true });
    }
  }

  /** @param {{thread: string, answering?: boolean}} message */
  #receive({ thread, answering }) {
    if (this.#closed) return;
    if (answering) this.#await(thread);
    if (answering === false && !navigator.locks) this.#ended(thread);
    else this.#heard(thread, false);
  }

  /** @param {string} thread */
  #await(thread) {
    if (this.answering.has(thread)) return;
    this.answering.add(thread);
    void navigator.locks?.request(LOCK + thread, { mode: "shared" }, () => this.#ended(thread));
  }

  /** @param {string} thread */
  #ended(thread) {
    this.answering.delete(thread);
    if (!this.#closed) this.#heard(thread, true);
  }
}

// @ts-check
const LOCK = "todo.answering.";

/**
 * The other tabs of this browser: their changes and running answers. A tab holds a lock during an answer, so that
 * a closed tab frees its conversation; without locks (plain http) tabs only send messages.
 */
export class Tabs {
  /** Conversations with a running answer in another tab; a new one, without an id, is never among them. @type {Set<string | null>} */
  answering = new Set();
  /** Callbacks that end the answers of this tab. @type {Map<string, () => void>} */
  #answeringHere = new Map();
  #channel = new BroadcastChannel("todo");
  #closed = false;
  #onChange;

  /** @param {(thread: string, ended: boolean) => void} onChange called when a conversation has changed; `ended`: its answer has ended */
  constructor(onChange) {
    this.#onChange = onChange;
    this.#channel.onmessage = ({ data }) => this.#receive(data);
    void this.#readLocks();
  }

  /** @param {string | null} thread the conversation that has changed here */
  announceChange(thread) {
    if (thread && !this.#closed) this.#channel.postMessage({ thread });
  }

  /** @param {string | null} thread the conversation whose answer runs here */
  begin(thread) {
    if (!thread || this.#answeringHere.has(thread) || this.#closed) return;
    const announce = () => this.#channel.postMessage({ thread, answering: true });
    /** @type {Promise<void>} */
    const ended = new Promise((resolve) => this.#answeringHere.set(thread, resolve));
    if (!navigator.locks) return announce();
    void navigator.locks.request(LOCK + thread, () => {
      if (this.#answeringHere.has(thread)) announce();
      return ended;
    });
  }

  /** @param {string | null} thread */
  end(thread) {
    const end = thread && this.#answeringHere.get(thread);
    if (!end) return;
    this.#answeringHere.delete(thread);
    end();
    this.#channel.postMessage({ thread, answering: false });
  }

  /** Ends all answers, because this tab is closed. */
  leave() {
    for (const thread of [...this.#answeringHere.keys()]) this.end(thread);
  }

  close() {
    this.leave();
    this.#closed = true;
    this.#channel.close();
  }

  /** Reads which conversations have a running answer. */
  async #readLocks() {
    const { held = [] } = (await navigator.locks?.query()) ?? {};
    for (const { name } of held) {
      if (name?.startsWith(LOCK)) this.#receive({ thread: name.slice(LOCK.length), answering: true });
    }
  }

  /** @param {{thread: string, answering?: boolean}} message */
  #receive({ thread, answering }) {
    if (this.#closed) return;
    if (answering) this.#awaitEnd(thread);
    if (answering === false && !navigator.locks) this.#ended(thread);
    else this.#onChange(thread, false);
  }

  /** @param {string} thread */
  #awaitEnd(thread) {
    if (this.answering.has(thread)) return;
    this.answering.add(thread);
    void navigator.locks?.request(LOCK + thread, { mode: "shared" }, () => this.#ended(thread));
  }

  /** @param {string} thread */
  #ended(thread) {
    this.answering.delete(thread);
    if (!this.#closed) this.#onChange(thread, true);
  }
}

// @ts-check
import { storage } from "./chat/storage.js";

const WANTED = "todo.reminders";
const PAUSE = 20_000; // ms

/** @typedef {{id: number, title: string, due: string | null, time: string | null}} Task */

/** Notifications of tasks that become due while the page is open, for who has asked for them. */
export class Reminders {
  /** The person's wall clock when it was last looked: what was due until then is not told any more. @type {string | null} */
  #since = null;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;
  /** Undefined until it was tried. @type {boolean | undefined} */
  #possible;
  #fetch;
  #open;

  /** @param {typeof fetch} send @param {(taskId: number) => void} open the task of a notification that was clicked */
  constructor(send, open) {
    this.#fetch = send;
    this.#open = open;
  }

  /** Whether the browser lets a page notify: only from https and localhost, and Chrome on Android never does. */
  get possible() {
    this.#possible ??= "Notification" in globalThis && (Notification.permission === "granted" || canNotify());
    return this.#possible;
  }

  get wanted() {
    return this.possible && storage.get(WANTED) === "yes" && Notification.permission === "granted";
  }

  /** Begin or end, as the person wants; returns whether the browser lets us. @param {boolean} wanted */
  async want(wanted) {
    const granted = wanted && (await Notification.requestPermission()) === "granted";
    if (granted) this.#possible = canNotify();
    const allowed = !wanted || (granted && this.possible);
    storage.set(WANTED, wanted && allowed ? "yes" : null);
    if (this.wanted) this.begin();
    else this.end();
    return allowed;
  }

  /** Look from now on, if they are wanted. */
  begin() {
    this.end();
    if (!this.wanted) return;
    this.#timer = setInterval(() => void this.#look(), PAUSE);
    void this.#look();
  }

  end() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#since = null;
  }

  async #look() {
    const timer = this.#timer;
    const { now, tasks } = await this.#today();
    if (!now || timer !== this.#timer) return; // ended meanwhile, or not answered: it is looked again
    const since = this.#since ?? now;
    this.#since = now;
    for (const task of tasks) {
      const due = `${task.due}T${task.time}`;
      if (task.time && since < due && due <= now) this.#tell(task, due);
    }
  }

  /** @returns {Promise<{now: string | null, tasks: Task[]}>} */
  async #today() {
    const none = { now: null, tasks: [] };
    /** @type {Task[]} */
    const tasks = [];
    for (let cursor = ""; ; ) {
      const response = await this.#fetch(`/tasks?view=today&limit=100${cursor}`).catch(() => null);
      const page = response?.ok ? await response.json().catch(() => null) : null;
      if (!page) return none;
      tasks.push(...page.tasks);
      if (!page.next_cursor) return { now: page.now, tasks };
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
    }
  }

  /** Another tab's notification of the same is replaced without a sound. @param {Task} task @param {string} due */
  #tell({ id, title, time }, due) {
    const shown = new Notification(title, { body: timeOf(time), tag: `${id} ${due}`, icon: "/web/icons/192.png" });
    shown.onclick = () => {
      window.focus();
      shown.close();
      this.#open(id);
    };
  }
}

/** Whether one can be made, which is not to be seen. */
function canNotify() {
  try {
    new Notification("", { silent: true }).close();
    return true;
  } catch {
    return false; // it wants a service worker
  }
}

/** As the reader writes it. @param {string | null} time */
function timeOf(time) {
  const moment = new Date(`2000-01-01T${time}`);
  return new Intl.DateTimeFormat(undefined, { timeStyle: "short" }).format(moment);
}

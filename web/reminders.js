// @ts-check
import { storage } from "./chat/storage.js";
import { removeBidiControls } from "./words.js";

const WANTED = "todo.reminders";
const PAUSE = 20_000; // ms

/** @typedef {{id: number, title: string, due: string | null, time: string | null}} Task */

/** Shows notifications of tasks that become due while the page is open, if the user wants them. */
export class Reminders {
  /** The user's local time of the last check; what was due before is not notified. @type {string | null} */
  #since = null;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;
  /** Undefined until it is tried. @type {boolean | undefined} */
  #possible;
  #fetch;
  #open;

  /** @param {typeof fetch} send @param {(taskId: number) => void} open the task of a notification that was clicked */
  constructor(send, open) {
    this.#fetch = send;
    this.#open = open;
  }

  /** Whether the browser allows notifications: only with https or localhost, and never in Chrome on Android. */
  get possible() {
    this.#possible ??= "Notification" in globalThis && (Notification.permission === "granted" || canNotify());
    return this.#possible;
  }

  get wanted() {
    return this.possible && storage.get(WANTED) === "yes" && Notification.permission === "granted";
  }

  /** Switches notifications on or off; returns whether the browser allows them. @param {boolean} wanted */
  async want(wanted) {
    const granted = wanted && (await Notification.requestPermission()) === "granted";
    if (granted) this.#possible = canNotify();
    const allowed = !wanted || (granted && this.possible);
    storage.set(WANTED, wanted && allowed ? "yes" : null);
    if (this.wanted) this.begin();
    else this.end();
    return allowed;
  }

  /** Begins to check, if notifications are wanted. */
  begin() {
    this.end();
    if (!this.wanted) return;
    this.#timer = setInterval(() => void this.#check(), PAUSE);
    void this.#check();
  }

  end() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#since = null;
  }

  async #check() {
    const timer = this.#timer;
    const { now, tasks } = await this.#today();
    if (!now || timer !== this.#timer) return; // it has ended, or there was no response: checked again later
    const since = this.#since ?? now;
    this.#since = now;
    for (const task of tasks) {
      const due = `${task.due}T${task.time}`;
      if (task.time && since < due && due <= now) this.#notify(task, due);
    }
  }

  /** @returns {Promise<{now: string | null, tasks: Task[]}>} */
  async #today() {
    const none = { now: null, tasks: [] };
    /** @type {Task[]} */
    const tasks = [];
    for (let cursor = ""; ; ) {
      const response = await this.#fetch(`tasks?view=today&limit=100${cursor}`).catch(() => null);
      const page = response?.ok ? await response.json().catch(() => null) : null;
      if (!page) return none;
      tasks.push(...page.tasks);
      if (!page.next_cursor) return { now: page.now, tasks };
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
    }
  }

  /** Replaces another tab's notification of the task silently. @param {Task} task @param {string} due */
  #notify({ id, title, time }, due) {
    const shown = new Notification(removeBidiControls(title), { body: timeOf(time), tag: `${id} ${due}`, icon: new URL("icons/192.png", import.meta.url).href });
    shown.onclick = () => {
      window.focus();
      shown.close();
      this.#open(id);
    };
  }
}

/** Tries whether a notification can be created, without showing one. */
function canNotify() {
  try {
    new Notification("", { silent: true }).close();
    return true;
  } catch {
    return false; // it needs a service worker
  }
}

/** @param {string | null} time */
function timeOf(time) {
  const moment = new Date(`2000-01-01T${time}`);
  return new Intl.DateTimeFormat(undefined, { timeStyle: "short" }).format(moment);
}

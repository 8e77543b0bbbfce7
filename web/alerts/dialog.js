// @ts-check
import { sentence } from "../chat/protocol.js";
import { fetchFromHere } from "../http.js";
import { TEXTS } from "../texts.js";
import { render } from "../vendor/lit-html/lit-html.js";
import { openForm } from "./forms.js";
import { findObstacle, findOwnChannel, PushProblem, register, subscribe, unsubscribe } from "./push.js";
import { ALERTS } from "./texts.js";
import { content } from "./views.js";
/** @import {Adding} from "./forms.js" */
/** @import {Channel, RecentAlert, Settings} from "./types" */

const RECENT = 10;

/** @typedef {{unauthorized: () => void, changed: () => void}} Page `changed`: notifications were switched on or off */

/**
 * @typedef {object} State
 * @property {Settings | null} settings null until they are loaded
 * @property {RecentAlert[] | null} recent
 * @property {Map<number, string>} titles of tasks
 * @property {string | null} obstacle why nothing can reach this browser while the page is closed
 * @property {Adding | null} adding the form of a channel that is open
 * @property {string} [status]
 * @property {string} [problem]
 */

/** Shows the dialog about notifications. @param {Page} page */
export async function showNotifications(page) {
  await new NotificationsDialog(page).open();
}

/** What the user can do in the dialog. */
export class NotificationsDialog {
  #dialog = document.createElement("dialog");
  /** @type {State} */
  #state = { settings: null, recent: null, titles: new Map(), obstacle: findObstacle(), adding: null };
  #isBusy = false;
  #page;

  /** @param {Page} page */
  constructor(page) {
    this.#page = page;
    this.#dialog.className = "sheet alerts";
    this.#dialog.setAttribute("aria-labelledby", "alerts-title");
    this.#dialog.addEventListener("close", () => this.#dialog.remove());
  }

  async open() {
    this.#draw({});
    document.body.append(this.#dialog);
    this.#dialog.showModal();
    await this.#load();
  }

  /** @param {boolean} on */
  toggle = (on) =>
    this.#work(async () => {
      await this.#change("PATCH", "alerts/settings", { on });
      this.#page.changed();
    });

  /** @param {SubmitEvent} event */
  save = (event) => {
    event.preventDefault();
    const values = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const [digest_time, quiet_from, quiet_until] = ["digest_time", "quiet_from", "quiet_until"].map((name) => String(values.get(name)) || null);
    if ((quiet_from === null) !== (quiet_until === null)) return this.#draw({ problem: ALERTS.when.quietHalf });
    const remind = String(values.get("remind"));
    const settings = { remind: remind === "none" ? remind : Number(remind), digest_time, quiet_from, quiet_until };
    void this.#work(() => this.#change("PATCH", "alerts/settings", settings, ALERTS.saved));
  };

  /** Asks for the permission at once: browsers take it from a click alone. */
  addDevice = () =>
    this.#work(async () => {
      const { settings } = this.#state;
      if (!settings) return;
      const isEnded = (findOwnChannel(settings.channels)?.problem ?? null) !== null;
      const asked = subscribe(settings.push_key, isEnded);
      this.#draw({ status: ALERTS.device.adding });
      const response = await this.#read(await register(await asked));
      if (response) await this.#load(ALERTS.device.added);
    });

  /** Opens or closes the form of a kind. @param {string | null} kind */
  show = (kind) => {
    this.#draw({ adding: kind === null ? null : openForm(kind) });
    /** @type {HTMLElement | null} */ (this.#dialog.querySelector("form.new input"))?.focus();
  };

  /** @param {SubmitEvent} event */
  add = (event) => {
    event.preventDefault();
    const kind = this.#state.adding?.kind;
    const fields = [...new FormData(/** @type {HTMLFormElement} */ (event.target))].map(([name, value]) => [name, String(value).trim()]);
    const target = Object.fromEntries(fields.filter(([, value]) => value));
    void this.#work(async () => {
      if (!(await this.#ask("POST", "alerts/channels", { kind, name: ALERTS.kinds[kind ?? ""], target }))) return;
      this.#state.adding = null;
      await this.#load(ALERTS.others.added);
      this.#focusTitle();
    });
  };

  /** @param {Channel} channel */
  test = ({ id }) =>
    this.#work(async () => {
      this.#draw({ status: ALERTS.channels.testing });
      const response = await this.#ask("POST", `alerts/channels/${id}/test`);
      if (!response) return;
      const { accepted, message } = await response.json();
      await this.#load(message);
      if (!accepted) this.#draw({ problem: message });
    });

  /** @param {Channel} channel @param {number} position which counts from 1 */
  move = ({ id }, position) =>
    this.#work(async () => {
      await this.#change("PATCH", `alerts/channels/${id}`, { position }, ALERTS.channels.moved);
      this.#focusTitle();
    });

  /** @param {Channel} channel */
  turn = ({ id, state }) => this.#work(() => this.#change("PATCH", `alerts/channels/${id}`, { on: state !== "on" }));

  /** @param {Channel} channel */
  remove = (channel) =>
    this.#work(async () => {
      if (channel === findOwnChannel(this.#state.settings?.channels ?? [])) await unsubscribe();
      await this.#change("DELETE", `alerts/channels/${channel.id}`, undefined, ALERTS.channels.removed);
      this.#focusTitle();
    });

  /** Does one thing at a time: after a click, another button may be below the pointer. @param {() => Promise<void>} work */
  async #work(work) {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#dialog.ariaBusy = "true";
    this.#draw({}); // announces the second status like the first
    await work().catch((error) => {
      if (!(error instanceof PushProblem)) throw error;
      this.#draw({ problem: error.message });
    });
    this.#isBusy = false;
    this.#dialog.ariaBusy = "false";
  }

  /** @param {string} method @param {string} path @param {object} [body] @param {string} [status] */
  async #change(method, path, body, status) {
    if (await this.#ask(method, path, body)) await this.#load(status);
    else this.#draw({ problem: this.#state.problem }); // the switches show again what is stored
  }

  /** @param {string} [status] */
  async #load(status) {
    const [settings, recent] = await Promise.all([this.#ask("GET", "alerts/settings"), this.#ask("GET", `alerts?limit=${RECENT}`)]);
    if (settings) this.#draw({ settings: await settings.json(), status });
    if (!recent) return;
    const { alerts } = await recent.json();
    this.#draw({ recent: alerts, status });
    await this.#loadTitles(alerts);
    this.#draw({ status: this.#state.status, problem: this.#state.problem });
  }

  /** Loads the titles of the tasks, which alerts do not store. @param {RecentAlert[]} alerts */
  async #loadTitles(alerts) {
    const { titles } = this.#state;
    const ids = new Set(alerts.flatMap(({ kind, tasks }) => (kind === "task" ? tasks : [])));
    const load = async (/** @type {number} */ id) => {
      const response = await fetchFromHere(`tasks/${id}`).catch(() => null);
      if (response?.ok) titles.set(id, (await response.json()).title);
    };
    await Promise.all([...ids].filter((id) => !titles.has(id)).map(load));
  }

  /** @param {string} method @param {string} path @param {object} [body] */
  async #ask(method, path, body) {
    const init = body ? { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {};
    const response = await fetchFromHere(path, { method, cache: "no-store", ...init }).catch(() => null);
    const isGone = method === "DELETE" && response?.status === 404; // it was removed elsewhere
    return isGone ? response : this.#read(response);
  }

  /** Returns a successful response; otherwise says what is wrong. @param {Response | null} response */
  async #read(response) {
    if (response?.ok) return response;
    if (response?.status === 401) return void (this.#dialog.isConnected && this.#page.unauthorized()); // else it is of a session before
    this.#draw({ problem: response ? await sentence(response) : TEXTS.unreachable });
  }

  /** The clicked button is gone, or is now that of another channel. */
  #focusTitle() {
    this.#dialog.querySelector("h2")?.focus();
  }

  /** @param {Partial<State>} now */
  #draw(now) {
    this.#state = { ...this.#state, status: undefined, problem: undefined, obstacle: findObstacle(), ...now };
    render(content(this.#state, this), this.#dialog);
  }
}

// @ts-check
import { fetchFromHere } from "../http.js";
import { ListDialog } from "../list-dialog.js";
import { openForm } from "./forms.js";
import { DEVICE } from "./page-texts.js";
import { findOwnChannel, PushProblem, register, subscribe, unsubscribe } from "./push.js";
import { ALERTS } from "./texts.js";
import { content } from "./views.js";
/** @import {Adding} from "./forms.js" */
/** @import {Channel, RecentAlert, Settings} from "./types" */

/** @typedef {{unauthorized: () => void, changed: () => void}} Page `changed`: notifications were switched on or off */

/** Shows the dialog about notifications. @param {Page} page */
export async function showNotifications({ unauthorized, changed }) {
  /** @type {ListDialog<RecentAlert>} */
  const dialog = new ListDialog(
    {
      name: "alerts",
      title: ALERTS.title,
      path: "alerts?limit=10",
      ended: ALERTS.channels.removed,
      content: () => content(actions),
      load: () => actions.load(),
    },
    unauthorized,
  );
  const actions = new NotificationActions(dialog, changed);
  await dialog.open();
}

/** What the user can do in the dialog, and what it shows besides the last notifications. */
export class NotificationActions {
  /** Null until they are loaded. @type {Settings | null} */
  settings = null;
  /** Titles of tasks. @type {Map<number, string>} */
  titles = new Map();
  /** The form of a channel that is open. @type {Adding | null} */
  adding = null;
  #dialog;
  #changed;

  /** @param {ListDialog<RecentAlert>} dialog @param {() => void} changed */
  constructor(dialog, changed) {
    this.#dialog = dialog;
    this.#changed = changed;
  }

  /** The last notifications; null until they are loaded. */
  get recent() {
    return this.#dialog.rows;
  }

  /** @param {Event} event */
  toggle = ({ target }) => {
    const input = /** @type {HTMLInputElement} */ (target);
    const { checked: on } = input;
    void this.#dialog.change(async () => {
      if (await this.#change("alerts/settings", { on })) this.#changed();
      else input.checked = !on;
    });
  };

  /** @param {SubmitEvent} event */
  save = (event) => {
    event.preventDefault();
    const values = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const [digest_time, quiet_from, quiet_until] = ["digest_time", "quiet_from", "quiet_until"].map((name) => String(values.get(name)) || null);
    if ((quiet_from === null) !== (quiet_until === null)) return this.#dialog.show({ problem: ALERTS.when.quietHalf });
    const remind = String(values.get("remind"));
    const settings = { remind: remind === "none" ? remind : Number(remind), digest_time, quiet_from, quiet_until };
    void this.#dialog.change(() => this.#change("alerts/settings", settings, ALERTS.saved));
  };

  /** Asks for the permission at once: browsers take it from a click alone. */
  addDevice = () =>
    this.#dialog.change(async () => {
      const { settings } = this;
      if (!settings) return;
      const isEnded = (findOwnChannel(settings.channels)?.problem ?? null) !== null;
      const asked = subscribe(settings.push_key, isEnded);
      this.#dialog.show({ status: DEVICE.adding });
      try {
        if (await this.#dialog.read(await register(await asked))) await this.#dialog.load(DEVICE.added);
      } catch (error) {
        if (!(error instanceof PushProblem)) throw error;
        this.#dialog.show({ problem: error.message });
      }
    });

  /** Opens the form of a kind, or closes it. @param {string} kind */
  toggleForm = (kind) => {
    this.adding = this.adding?.kind === kind ? null : openForm(kind);
    this.#dialog.show();
    this.#dialog.focus("form.new input");
  };

  /** @param {SubmitEvent} event */
  add = (event) => {
    event.preventDefault();
    const kind = this.adding?.kind;
    const fields = [...new FormData(/** @type {HTMLFormElement} */ (event.target))].map(([name, value]) => [name, String(value).trim()]);
    const target = Object.fromEntries(fields.filter(([, value]) => value));
    void this.#dialog.change(async () => {
      if (!(await this.#dialog.request("POST", "alerts/channels", { kind, name: ALERTS.kinds[kind ?? ""], target }))) return;
      this.adding = null;
      await this.#dialog.load(ALERTS.others.added);
      this.#dialog.focus("h2"); // the form is gone
    });
  };

  /** @param {Channel} channel */
  test = ({ id }) =>
    this.#dialog.change(async () => {
      this.#dialog.show({ status: ALERTS.channels.testing });
      const response = await this.#dialog.request("POST", `alerts/channels/${id}/test`);
      if (!response) return;
      const { accepted, message } = await response.json();
      await this.#dialog.load(message);
      if (!accepted) this.#dialog.show({ problem: message });
    });

  /** @param {Channel} channel @param {number} position which counts from 1 */
  move = ({ id }, position) =>
    this.#dialog.change(async () => {
      const isMoved = await this.#change(`alerts/channels/${id}`, { position }, ALERTS.channels.moved);
      if (isMoved) this.#dialog.focus("h2"); // the clicked button is gone, or is now that of another channel
    });

  /** @param {Channel} channel */
  turn = ({ id, state }) => this.#dialog.change(() => this.#change(`alerts/channels/${id}`, { on: state !== "on" }));

  /** @param {Channel} channel @param {MouseEvent} click */
  remove = (channel, click) =>
    this.#dialog.end(`alerts/channels/${channel.id}`, click, async () => {
      if (channel === findOwnChannel(this.settings?.channels ?? [])) await unsubscribe();
    });

  /** Loads what the dialog shows; resolves to whether that succeeded. */
  async load() {
    const [response, hasRows] = await Promise.all([this.#dialog.request("GET", "alerts/settings"), this.#dialog.loadRows()]);
    if (response) this.settings = await response.json();
    this.#dialog.draw();
    void this.#loadTitles();
    return Boolean(response) && hasRows;
  }

  /** Changes what is stored, and shows it; resolves to whether it was changed. @param {string} path @param {object} body @param {string} [status] */
  async #change(path, body, status) {
    if (!(await this.#dialog.request("PATCH", path, body))) return false;
    await this.#dialog.load(status);
    return true;
  }

  /** Loads the titles of the tasks, which alerts do not store. */
  async #loadTitles() {
    const { titles } = this;
    const ids = new Set((this.recent ?? []).flatMap(({ kind, tasks }) => (kind === "task" ? tasks : [])));
    const load = async (/** @type {number} */ id) => {
      const response = await fetchFromHere(`tasks/${id}`).catch(() => null);
      if (response?.ok) titles.set(id, (await response.json()).title);
    };
    await Promise.all([...ids].filter((id) => !titles.has(id)).map(load));
    this.#dialog.draw();
  }
}

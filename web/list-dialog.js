// @ts-check
import { sentence } from "./chat/protocol.js";
import { fetchFromHere, newKey } from "./http.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";

/**
 * What differs between these dialogs.
 * @template Row
 * @typedef {object} Parts
 * @property {string} name the class and the beginning of the ids
 * @property {string} title
 * @property {string} path of the list, which without a query is also its name in the response
 * @property {string} ended what is said once a row is ended
 * @property {(dialog: ListDialog<Row>) => unknown} content renders what is between the heading and the status
 * @property {(dialog: ListDialog<Row>) => unknown} [form] renders a form below the status
 * @property {(dialog: ListDialog<Row>) => unknown} [buttons] renders what is beside the button that closes it
 * @property {(dialog: ListDialog<Row>) => Promise<boolean>} [load] loads what is shown, where that is not only the rows; resolves to whether it succeeded
 */

/** A dialog with what the server lists of the user, whose rows can be ended or changed: sessions, tokens, programs, schedules. @template Row */
export class ListDialog {
  /** The last used first; null until they are loaded. @type {Row[] | null} */
  rows = null;
  #dialog = document.createElement("dialog");
  #isBusy = false;
  #status = "";
  #problem = "";
  #parts;
  #unauthorized;

  /** @param {Parts<Row>} parts @param {() => void} unauthorized */
  constructor(parts, unauthorized) {
    this.#parts = parts;
    this.#unauthorized = unauthorized;
    this.#dialog.className = `sheet ${parts.name}`;
    this.#dialog.setAttribute("aria-labelledby", `${parts.name}-title`);
    this.#dialog.addEventListener("close", () => this.#dialog.remove()); // it may contain a secret
  }

  async open() {
    this.show();
    document.body.append(this.#dialog);
    this.#dialog.showModal();
    await this.load();
  }

  close() {
    this.#dialog.close();
  }

  get isOpen() {
    return this.#dialog.isConnected;
  }

  /** Shows a status or a problem in place of the last one. @param {{status?: string, problem?: string}} [now] */
  show({ status = "", problem = "" } = {}) {
    [this.#status, this.#problem] = [status, problem];
    this.draw();
  }

  draw() {
    render(this.#render(), this.#dialog);
  }

  /** @param {string} [status] what is shown with the list; a problem of the request is shown instead */
  async load(status) {
    if (await this.refresh()) this.show({ status });
  }

  /** Loads the list, and leaves the status as it is; resolves to whether it was loaded. */
  async refresh() {
    return (await this.#parts.load?.(this)) ?? this.loadRows();
  }

  async loadRows() {
    const response = await this.request("GET", this.#parts.path);
    if (!response) return false;
    this.rows = (await response.json())[this.#parts.path.split("?")[0]];
    this.draw();
    return true;
  }

  /** Ends what is at a path, and loads the list. @param {string} path @param {MouseEvent} click @param {() => Promise<void>} [before] what is done first */
  async end(path, { detail }, before) {
    if (detail > 1) return; // at a double click, another button is below the pointer
    await this.change(async () => {
      await before?.();
      if (!(await this.request("DELETE", path))) return;
      await this.load(this.#parts.ended);
      this.focus("h2"); // the clicked button is gone, or is now that of another row
    });
  }

  /** Does one change at a time. @param {() => Promise<unknown>} work */
  async change(work) {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#dialog.ariaBusy = "true";
    this.show(); // announces the second status like the first
    try {
      await work();
    } finally {
      this.#isBusy = false;
      this.#dialog.ariaBusy = "false";
    }
  }

  /** Returns the response if it is a success; else shows the problem. @param {string} method @param {string} path @param {object} [body] */
  async request(method, path, body) {
    const headers = { ...(body && { "Content-Type": "application/json" }), ...(method === "POST" && { "Idempotency-Key": newKey() }) };
    const response = await fetchFromHere(path, { method, cache: "no-store", headers, ...(body && { body: JSON.stringify(body) }) }).catch(() => null);
    const isGone = method === "DELETE" && response?.status === 404; // it was ended elsewhere
    return isGone ? response : this.read(response);
  }

  /** Returns a response that is a success; else shows the problem. @param {Response | null} response */
  async read(response) {
    if (response?.ok) return response;
    if (response?.status === 401) return void (this.isOpen && this.#unauthorized()); // else it is of a session before
    this.show({ problem: response ? await sentence(response) : TEXTS.unreachable });
  }

  /** @param {string} selector */
  focus(selector) {
    /** @type {HTMLElement | null} */ (this.#dialog.querySelector(selector))?.focus();
  }

  #render() {
    const { name, title, content, form, buttons } = this.#parts;
    return html`
      <h2 id=${`${name}-title`} tabindex="-1" autofocus>${title}</h2>
      ${content(this)}
      <div class="end">
        <p class="quiet" role="status" translate="no">${this.#status}</p>
        ${this.#problem ? html`<p class="problem" role="alert" dir="auto">${this.#problem}</p>` : nothing} ${form ? form(this) : nothing}
        <form method="dialog">
          ${buttons ? buttons(this) : nothing}
          <button type="submit" class="button">${TEXTS.close}</button>
        </form>
      </div>
    `;
  }
}

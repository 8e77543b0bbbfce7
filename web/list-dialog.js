// @ts-check
import { sentence } from "./chat/protocol.js";
import { fetchFromHere } from "./http.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";

/**
 * What differs between these dialogs.
 * @template Row
 * @typedef {object} Parts
 * @property {string} name the class and the beginning of the ids
 * @property {string} title
 * @property {string} path of the list, which is also its name in the response
 * @property {string} ended what is said once a row is ended
 * @property {(dialog: ListDialog<Row>) => unknown} content renders what is between the heading and the status
 * @property {(dialog: ListDialog<Row>) => unknown} [form] renders a form below the status
 * @property {(dialog: ListDialog<Row>) => unknown} [buttons] renders what is beside the button that closes it
 */

/** A dialog with what the server lists of the user, whose rows can be ended: sessions, tokens, programs. @template Row */
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

  /** Shows a status or a problem in place of the last one. @param {{status?: string, problem?: string}} [now] */
  show({ status = "", problem = "" } = {}) {
    [this.#status, this.#problem] = [status, problem];
    render(this.#render(), this.#dialog);
  }

  /** @param {string} [status] what is shown with the list; a problem of the request is shown instead */
  async load(status) {
    const response = await this.request("GET", this.#parts.path);
    if (!response) return;
    this.rows = (await response.json())[this.#parts.path];
    this.show({ status });
  }

  /** Ends what is at a path, and loads the list. @param {string} path @param {MouseEvent} click */
  async end(path, { detail }) {
    if (detail > 1) return; // at a double click, another button is below the pointer
    await this.change(async () => {
      if (!(await this.request("DELETE", path))) return;
      await this.load(this.#parts.ended);
      this.focus("h2"); // the clicked button is gone, or is now that of another row
    });
  }

  /** Does one change at a time. @param {() => Promise<void>} work */
  async change(work) {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.show(); // announces the second status like the first
    await work();
    this.#isBusy = false;
  }

  /** Returns the response if it is a success; else shows the problem. @param {string} method @param {string} path @param {object} [body] */
  async request(method, path, body) {
    const init = body ? { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {};
    const response = await fetchFromHere(path, { method, ...init }).catch(() => null);
    const isGone = method === "DELETE" && response?.status === 404; // it was ended elsewhere
    if (response?.ok || isGone) return response;
    if (response?.status === 401) return this.#unauthorized();
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
      <p class="quiet" role="status" translate="no">${this.#status}</p>
      ${this.#problem ? html`<p class="problem" role="alert">${this.#problem}</p>` : nothing} ${form ? form(this) : nothing}
      <form method="dialog">
        ${buttons ? buttons(this) : nothing}
        <button type="submit" class="button">${TEXTS.close}</button>
      </form>
    `;
  }
}

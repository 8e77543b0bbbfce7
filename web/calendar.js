// @ts-check
import { sentence } from "./chat/protocol.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";

const SAID = TEXTS.calendar;

/**
 * @typedef {object} State
 * @property {boolean | null} active whether there is an address; null until the server has said so
 * @property {string} [url] the address that was made just now: it is shown once
 * @property {boolean} [copied]
 * @property {boolean} [asking] whether the address is to be replaced
 * @property {string} [problem]
 */

/** Show the dialog in which the address of the person's calendar is made and revoked. @param {() => void} unauthorized */
export async function showCalendar(unauthorized) {
  const dialog = document.createElement("dialog");
  dialog.className = "sheet";
  dialog.setAttribute("aria-labelledby", "calendar-title");
  dialog.addEventListener("close", () => dialog.remove()); // with the address in it
  /** @type {State} */
  let state = { active: null };
  /** @param {Partial<State>} now */
  const draw = (now) => {
    state = { ...state, copied: false, asking: false, problem: undefined, ...now };
    render(content(state, { make, revoke, copy, askToReplace, cancel }), dialog);
  };
  const make = () => ask("POST", async (response) => ({ active: true, url: (await response.json()).url }));
  const revoke = () => ask("DELETE", async () => ({ active: false, url: undefined }));
  const copy = async () => draw(await copied(state.url ?? ""));
  const askToReplace = () => {
    draw({ asking: true });
    /** @type {HTMLElement | null} */ (dialog.querySelector("[data-cancel]"))?.focus();
  };
  const cancel = () => {
    draw({});
    dialog.querySelector("h2")?.focus();
  };
  /** @param {string} method @param {(response: Response) => Promise<Partial<State>>} change */
  const ask = async (method, change) => {
    const response = await fetch("/calendar", { method }).catch(() => null);
    if (!response) return draw({ problem: TEXTS.unreachable });
    if (response.status === 401) return unauthorized();
    draw(response.ok ? await change(response) : { problem: await sentence(response) });
    if (method !== "GET") dialog.querySelector("h2")?.focus(); // the button that was clicked may be gone
  };
  draw({});
  document.body.append(dialog);
  dialog.showModal();
  await ask("GET", async (response) => ({ active: (await response.json()).active }));
}

/** @param {string} url @returns {Promise<Partial<State>>} */
async function copied(url) {
  try {
    await navigator.clipboard.writeText(url);
    return { copied: true };
  } catch {
    return { problem: SAID.notCopied };
  }
}

/** @param {State} state @param {Record<"make" | "revoke" | "copy" | "askToReplace" | "cancel", () => void>} can */
const content = ({ active, url, copied, asking, problem }, { make, revoke, copy, askToReplace, cancel }) => html`
  <h2 id="calendar-title" tabindex="-1">${SAID.title}</h2>
  <p>${SAID.about}</p>
  ${url
    ? html`
        <label for="calendar-url">${SAID.address}</label>
        <input id="calendar-url" readonly .value=${url} @focus=${select} />
        ${navigator.clipboard // the browser gives it to https and localhost only
          ? html`<button type="button" class="button primary" @click=${copy}>${TEXTS.copy}</button>`
          : nothing}
      `
    : nothing}
  <p class="quiet" role="status" translate="no">${asking ? SAID.ask : said(active, url, copied)}</p>
  ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
  <form method="dialog">
    ${asking
      ? html`
          <button type="button" class="button danger" @click=${make}>${SAID.replace}</button>
          <button type="button" class="button" data-cancel @click=${cancel}>${TEXTS.cancel}</button>
        `
      : html`
          ${active ? html`<button type="button" class="button danger" @click=${revoke}>${SAID.revoke}</button>` : nothing}
          <button type="button" class="button ${active ? "" : "primary"}" ?disabled=${active === null} @click=${active ? askToReplace : make}>
            ${active ? SAID.another : SAID.make}
          </button>
          <button type="submit" class="button">${TEXTS.close}</button>
        `}
  </form>
`;

/** @param {boolean | null} active @param {string} [url] @param {boolean} [copied] */
function said(active, url, copied) {
  if (copied) return TEXTS.copied;
  if (url) return SAID.replaces;
  if (active === null) return "";
  return active ? SAID.active : SAID.none;
}

/** @param {FocusEvent} event */
const select = ({ target }) => target instanceof HTMLInputElement && target.select();

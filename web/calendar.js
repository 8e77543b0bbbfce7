// @ts-check
import { sentence } from "./chat/protocol.js";
import { fetchFromHere } from "./http.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";

const MESSAGES = TEXTS.calendar;

/**
 * @typedef {object} State
 * @property {boolean | null} active whether there is an address; null until it is loaded
 * @property {string} [url] a new address, which is shown once
 * @property {boolean} [copied]
 * @property {boolean} [asking] whether the user is asked to confirm a replacement
 * @property {string} [problem]
 */

/** Shows the dialog that creates and revokes the address of the user's calendar. @param {() => void} unauthorized */
export async function showCalendar(unauthorized) {
  const dialog = document.createElement("dialog");
  dialog.className = "sheet";
  dialog.setAttribute("aria-labelledby", "calendar-title");
  dialog.addEventListener("close", () => dialog.remove()); // the dialog contains the secret address
  /** @type {State} */
  let state = { active: null };
  /** @param {Partial<State>} now */
  const draw = (now) => {
    state = { ...state, copied: false, asking: false, problem: undefined, ...now };
    render(content(state, { make, revoke, copy, askToReplace, cancel }), dialog);
  };
  const make = () => ask("POST", async (response) => ({ active: true, url: (await response.json()).url }));
  const revoke = () => ask("DELETE", async () => ({ active: false, url: undefined }));
  const copy = async () => draw(await copyAddress(state.url ?? ""));
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
    const response = await fetchFromHere("calendar", { method }).catch(() => null);
    if (!response) return draw({ problem: TEXTS.unreachable });
    if (response.status === 401) return unauthorized();
    draw(response.ok ? await change(response) : { problem: await sentence(response) });
    if (method !== "GET") dialog.querySelector("h2")?.focus(); // the clicked button may be gone
  };
  draw({});
  document.body.append(dialog);
  dialog.showModal();
  await ask("GET", async (response) => ({ active: (await response.json()).active }));
}

/** @param {string} url @returns {Promise<Partial<State>>} */
async function copyAddress(url) {
  try {
    await navigator.clipboard.writeText(url);
    return { copied: true };
  } catch {
    return { problem: MESSAGES.notCopied };
  }
}

/** @param {State} state @param {Record<"make" | "revoke" | "copy" | "askToReplace" | "cancel", () => void>} can */
const content = ({ active, url, copied, asking, problem }, { make, revoke, copy, askToReplace, cancel }) => html`
  <h2 id="calendar-title" tabindex="-1">${MESSAGES.title}</h2>
  <p>${MESSAGES.about}</p>
  ${url
    ? html`
        <label for="calendar-url">${MESSAGES.address}</label>
        <input id="calendar-url" readonly .value=${url} @focus=${select} />
        ${navigator.clipboard // needs https or localhost
          ? html`<button type="button" class="button primary" @click=${copy}>${TEXTS.copy}</button>`
          : nothing}
      `
    : nothing}
  <p class="quiet" role="status" translate="no">${asking ? MESSAGES.ask : describeState(active, url, copied)}</p>
  ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
  <form method="dialog">
    ${asking
      ? html`
          <button type="button" class="button danger" @click=${make}>${MESSAGES.replace}</button>
          <button type="button" class="button" data-cancel @click=${cancel}>${TEXTS.cancel}</button>
        `
      : html`
          ${active ? html`<button type="button" class="button danger" @click=${revoke}>${MESSAGES.revoke}</button>` : nothing}
          <button type="button" class="button ${active ? "" : "primary"}" ?disabled=${active === null} @click=${active ? askToReplace : make}>
            ${active ? MESSAGES.another : MESSAGES.make}
          </button>
          <button type="submit" class="button">${TEXTS.close}</button>
        `}
  </form>
`;

/** @param {boolean | null} active @param {string} [url] @param {boolean} [copied] */
function describeState(active, url, copied) {
  if (copied) return TEXTS.copied;
  if (url) return MESSAGES.replaces;
  if (active === null) return "";
  return active ? MESSAGES.active : MESSAGES.none;
}

/** @param {FocusEvent} event */
const select = ({ target }) => target instanceof HTMLInputElement && target.select();

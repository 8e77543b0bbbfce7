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
 * @property {string} [problem]
 */

/** Show the dialog in which the address of the person's calendar is made and revoked. */
export async function showCalendar() {
  const dialog = document.createElement("dialog");
  dialog.className = "sheet";
  dialog.setAttribute("aria-labelledby", "calendar-title");
  dialog.addEventListener("close", () => dialog.remove()); // with the address in it
  /** @type {State} */
  let state = { active: null };
  /** @param {Partial<State>} now */
  const draw = (now) => {
    state = { ...state, copied: false, problem: undefined, ...now };
    render(content(state, { make, revoke, copy }), dialog);
  };
  const make = () => ask("POST", async (response) => ({ active: true, url: (await response.json()).url }));
  const revoke = () => ask("DELETE", async () => ({ active: false, url: undefined }));
  const copy = async () => draw(await copied(state.url ?? ""));
  /** @param {string} method @param {(response: Response) => Promise<Partial<State>>} change */
  const ask = async (method, change) => {
    const response = await fetch("/calendar", { method }).catch(() => null);
    if (!response) return draw({ problem: TEXTS.unreachable });
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

/** @param {State} state @param {{make: () => void, revoke: () => void, copy: () => void}} can */
const content = ({ active, url, copied, problem }, { make, revoke, copy }) => html`
  <h2 id="calendar-title" tabindex="-1">${SAID.title}</h2>
  <p>${SAID.about}</p>
  ${url
    ? html`
        <label for="calendar-url">${SAID.address}</label>
        <input id="calendar-url" readonly .value=${url} @focus=${select} />
        ${navigator.clipboard // the browser gives it to https and localhost only
          ? html`<button type="button" class="button" @click=${copy}>${TEXTS.copy}</button>`
          : nothing}
      `
    : nothing}
  <p class="quiet" role="status">${said(active, url, copied)}</p>
  ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
  <form method="dialog">
    ${active ? html`<button type="button" class="button danger" @click=${revoke}>${SAID.revoke}</button>` : nothing}
    <button type="button" class="button primary" ?disabled=${active === null} @click=${make}>
      ${active ? SAID.another : SAID.make}
    </button>
    <button type="submit" class="button">${TEXTS.close}</button>
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

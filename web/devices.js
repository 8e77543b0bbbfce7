// @ts-check
import { timeWords } from "./chat/days.js";
import { sentence } from "./chat/protocol.js";
import { fetchFromHere } from "./http.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";

const MESSAGES = TEXTS.devices;

/** A place where the user is signed in. @typedef {{id: string, name: string, begun: string, last_used: string, is_current: boolean}} Session */

/**
 * @typedef {object} State
 * @property {Session[] | null} sessions the last used first; null until they are loaded
 * @property {string} [status]
 * @property {string} [problem]
 */

/** Shows the dialog that lists where the user is signed in, and ends the sessions there. @param {() => void} unauthorized */
export async function showDevices(unauthorized) {
  const dialog = document.createElement("dialog");
  dialog.className = "sheet devices";
  dialog.setAttribute("aria-labelledby", "devices-title");
  dialog.addEventListener("close", () => dialog.remove());
  /** @type {State} */
  let state = { sessions: null };
  let isEnding = false;
  /** @param {Partial<State>} now */
  const draw = (now) => {
    state = { ...state, status: undefined, problem: undefined, ...now };
    render(content(state, end), dialog);
  };
  /** @param {string} path of a session, or of all others @param {MouseEvent} click */
  const end = async (path, { detail }) => {
    if (isEnding || detail > 1) return; // at a double click, another button is below the pointer
    isEnding = true;
    draw({}); // announces the second status like the first
    if (await ask("DELETE", path)) {
      await load(MESSAGES.ended);
      dialog.querySelector("h2")?.focus(); // the clicked button is gone, or is now that of another session
    }
    isEnding = false;
  };
  /** @param {string} [status] */
  const load = async (status) => {
    const response = await ask("GET", "sessions");
    if (response) draw({ sessions: (await response.json()).sessions, status });
  };
  /** @param {string} method @param {string} path */
  const ask = async (method, path) => {
    const response = await fetchFromHere(path, { method }).catch(() => null);
    const isGone = method === "DELETE" && response?.status === 404; // it was ended elsewhere
    if (response?.ok || isGone) return response;
    if (response?.status === 401) return unauthorized();
    draw({ problem: response ? await sentence(response) : TEXTS.unreachable });
  };
  draw({});
  document.body.append(dialog);
  dialog.showModal();
  await load();
}

/** @param {State} state @param {(path: string, click: MouseEvent) => void} end */
const content = ({ sessions, status, problem }, end) => html`
  <h2 id="devices-title" tabindex="-1" autofocus>${MESSAGES.title}</h2>
  ${sessions?.length === 0 ? html`<p>${MESSAGES.none}</p>` : nothing}
  <ul>
    ${repeat(sessions ?? [], ({ id }) => id, (session) => row(session, end))}
  </ul>
  <p class="quiet" role="status" translate="no">${status ?? ""}</p>
  ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
  <form method="dialog">
    ${sessions?.some((session) => !session.is_current)
      ? html`<button type="button" class="button danger" @click=${(/** @type {MouseEvent} */ click) => end("sessions", click)}>
          ${sessions.some((session) => session.is_current) ? MESSAGES.endOthers : MESSAGES.endAll}
        </button>`
      : nothing}
    <button type="submit" class="button">${TEXTS.close}</button>
  </form>
`;

/** @param {Session} session @param {(path: string, click: MouseEvent) => void} end */
function row({ id, name, begun, last_used, is_current }, end) {
  const [begin, used] = [begun, last_used].map((time) => timeWords(new Date(time)));
  return html`
    <li>
      <div translate="no">${name}<br /><span class="quiet">${is_current ? MESSAGES.current : MESSAGES.lastUsed(used, begin)}</span></div>
      ${is_current
        ? nothing
        : html`<button type="button" class="button" aria-label=${MESSAGES.endOne(name, used, begin)} @click=${(/** @type {MouseEvent} */ click) => end(`sessions/${id}`, click)}>${MESSAGES.end}</button>`}
    </li>
  `;
}

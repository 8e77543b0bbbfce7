// @ts-check
import { timeWords } from "./chat/days.js";
import { sentence } from "./chat/protocol.js";
import { fetchFromHere } from "./http.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";

const MESSAGES = TEXTS.clients;

/** A program that the user has allowed. @typedef {{id: string, name: string, address: string, scopes: string[], allowed: string, last_used: string}} Client */

/**
 * @typedef {object} State
 * @property {Client[] | null} clients the last used first; null until they are loaded
 * @property {string} [status]
 * @property {string} [problem]
 */

/** Shows the dialog that lists the programs that may use the user's tasks, and ends that. @param {() => void} unauthorized */
export async function showClients(unauthorized) {
  const dialog = document.createElement("dialog");
  dialog.className = "sheet devices";
  dialog.setAttribute("aria-labelledby", "clients-title");
  dialog.addEventListener("close", () => dialog.remove());
  /** @type {State} */
  let state = { clients: null };
  let isEnding = false;
  /** @param {Partial<State>} now */
  const draw = (now) => {
    state = { ...state, status: undefined, problem: undefined, ...now };
    render(content(state, end), dialog);
  };
  /** @param {string} id @param {MouseEvent} click */
  const end = async (id, { detail }) => {
    if (isEnding || detail > 1) return; // at a double click, another button is below the pointer
    isEnding = true;
    draw({}); // announces the second status like the first
    if (await request("DELETE", `clients/${id}`)) {
      await load(MESSAGES.ended);
      dialog.querySelector("h2")?.focus(); // the clicked button is gone
    }
    isEnding = false;
  };
  /** @param {string} [status] */
  const load = async (status) => {
    const response = await request("GET", "clients");
    if (response) draw({ clients: (await response.json()).clients, status });
  };
  /** @param {string} method @param {string} path */
  const request = async (method, path) => {
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

/** @param {State} state @param {(id: string, click: MouseEvent) => void} end */
const content = ({ clients, status, problem }, end) => html`
  <h2 id="clients-title" tabindex="-1" autofocus>${MESSAGES.title}</h2>
  ${clients?.length === 0 ? html`<p>${MESSAGES.none}</p>` : nothing}
  <ul>
    ${repeat(clients ?? [], ({ id }) => id, (client) => row(client, end))}
  </ul>
  <p class="quiet" role="status" translate="no">${status ?? ""}</p>
  ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
  <form method="dialog"><button type="submit" class="button">${TEXTS.close}</button></form>
`;

/** @param {Client} client @param {(id: string, click: MouseEvent) => void} end */
function row({ id, name, address, scopes, allowed, last_used }, end) {
  const [begin, used] = [allowed, last_used].map((time) => timeWords(new Date(time)));
  return html`
    <li>
      <div>
        <bdi translate="no">${name}</bdi><br />
        <span class="quiet">${MESSAGES.address(address)}<br />${MESSAGES.lastUsed(used, begin)}<br />${scopes.map((scope) => MESSAGES.scopes[scope]).join(". ")}</span>
      </div>
      <button type="button" class="button" aria-label=${MESSAGES.endOne(name, used, begin)} @click=${(/** @type {MouseEvent} */ click) => end(id, click)}>${MESSAGES.end}</button>
    </li>
  `;
}

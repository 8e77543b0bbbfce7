// @ts-check
import { timeWords } from "./chat/days.js";
import { ListDialog } from "./list-dialog.js";
import { TEXTS } from "./texts.js";
import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";

const MESSAGES = TEXTS.clients;

/** A program that the user has allowed. @typedef {{id: string, name: string, address: string, scopes: string[], allowed: string, last_used: string}} Client */

/** Shows the dialog that lists the programs that may use the user's tasks, and ends that. @param {() => void} unauthorized */
export const showClients = (unauthorized) =>
  /** @type {ListDialog<Client>} */ (new ListDialog({ name: "clients", title: MESSAGES.title, path: "clients", ended: MESSAGES.ended, content }, unauthorized)).open();

/** @param {ListDialog<Client>} dialog */
const content = (dialog) => html`
  ${dialog.rows?.length === 0 ? html`<p>${MESSAGES.none}</p>` : nothing}
  <ul>
    ${repeat(dialog.rows ?? [], ({ id }) => id, (client) => row(client, dialog))}
  </ul>
`;

/** @param {Client} client @param {ListDialog<Client>} dialog */
function row({ id, name, address, scopes, allowed, last_used }, dialog) {
  const [begin, used] = [allowed, last_used].map((time) => timeWords(new Date(time)));
  const end = (/** @type {MouseEvent} */ click) => dialog.end(`clients/${id}`, click);
  return html`
    <li>
      <div>
        <bdi translate="no">${name}</bdi><br />
        <span class="quiet">${MESSAGES.address(address)}<br />${MESSAGES.lastUsed(used, begin)}<br />${scopes.map((scope) => MESSAGES.scopes[scope]).join(". ")}</span>
      </div>
      <button type="button" class="button" aria-label=${MESSAGES.endOne(name, used, begin)} @click=${end}>${MESSAGES.end}</button>
    </li>
  `;
}

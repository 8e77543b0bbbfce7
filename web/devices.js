// @ts-check
import { timeWords } from "./chat/days.js";
import { ListDialog } from "./list-dialog.js";
import { TEXTS } from "./texts.js";
import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";

const MESSAGES = TEXTS.devices;

/** A place where the user is signed in. @typedef {{id: string, name: string, begun: string, last_used: string, is_current: boolean}} Session */

/** Shows the dialog that lists where the user is signed in, and ends the sessions there. @param {() => void} unauthorized */
export const showDevices = (unauthorized) =>
  /** @type {ListDialog<Session>} */ (new ListDialog({ name: "devices", title: MESSAGES.title, path: "sessions", ended: MESSAGES.ended, content, buttons }, unauthorized)).open();

/** @param {ListDialog<Session>} dialog */
const content = (dialog) => html`
  ${dialog.rows?.length === 0 ? html`<p>${MESSAGES.none}</p>` : nothing}
  <ul>
    ${repeat(dialog.rows ?? [], ({ id }) => id, (session) => row(session, dialog))}
  </ul>
`;

/** @param {ListDialog<Session>} dialog */
function buttons(dialog) {
  const sessions = dialog.rows ?? [];
  if (!sessions.some((session) => !session.is_current)) return nothing;
  const end = (/** @type {MouseEvent} */ click) => dialog.end("sessions", click);
  return html`<button type="button" class="button danger" @click=${end}>
    ${sessions.some((session) => session.is_current) ? MESSAGES.endOthers : MESSAGES.endAll}
  </button>`;
}

/** @param {Session} session @param {ListDialog<Session>} dialog */
function row({ id, name, begun, last_used, is_current }, dialog) {
  const [begin, used] = [begun, last_used].map((time) => timeWords(new Date(time)));
  const end = (/** @type {MouseEvent} */ click) => dialog.end(`sessions/${id}`, click);
  return html`
    <li>
      <div translate="no">${name}<br /><span class="quiet">${is_current ? MESSAGES.current : MESSAGES.lastUsed(used, begin)}</span></div>
      ${is_current ? nothing : html`<button type="button" class="button" aria-label=${MESSAGES.endOne(name, used, begin)} @click=${end}>${MESSAGES.end}</button>`}
    </li>
  `;
}

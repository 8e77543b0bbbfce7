// @ts-check
import { timeWords } from "./chat/days.js";
import { ListDialog } from "./list-dialog.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";

const MESSAGES = TEXTS.accessTokens;
const SCOPES = /** @type {const} */ (["chat", "tasks", "tasks:read"]);
const DAYS = /** @type {const} */ ([30, 90, 365, 3650]);
const USUAL_DAYS = 90;

/** @typedef {typeof SCOPES[number]} Scope */

/** A token as it is listed. @typedef {{id: string, name: string, scopes: Scope[], last_used: string | null, expires: string}} AccessToken */

/** Shows the dialog that makes, lists and ends tokens for the user's programs. @param {() => void} unauthorized */
export function showAccessTokens(unauthorized) {
  /** A new token, which is shown once. */
  let made = "";
  /** @type {(dialog: ListDialog<AccessToken>) => unknown} */
  const content = (dialog) => list(dialog, made ? newToken(made, () => copy(made, dialog)) : nothing, () => (made = ""));
  /** @type {(dialog: ListDialog<AccessToken>) => unknown} */
  const form = (dialog) => newTokenForm((event) => make(event, dialog, (token) => (made = token)));
  return new ListDialog({ name: "access-tokens", title: MESSAGES.title, path: "tokens", ended: MESSAGES.ended, content, form }, unauthorized).open();
}

/** @param {SubmitEvent} event @param {ListDialog<AccessToken>} dialog @param {(token: string) => void} show */
async function make(event, dialog, show) {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.target);
  const fields = new FormData(form);
  const body = { name: String(fields.get("name")).trim(), scopes: fields.getAll("scope"), days: Number(fields.get("days")) };
  if (!body.scopes.length) return dialog.show({ problem: MESSAGES.noScope });
  await dialog.change(async () => {
    show("");
    const response = await dialog.request("POST", "tokens", body);
    if (!response) return;
    show((await response.json()).token);
    form.reset();
    await dialog.load();
    dialog.focus("input"); // that of the token
  });
}

/** @param {string} token @param {ListDialog<AccessToken>} dialog */
async function copy(token, dialog) {
  try {
    await navigator.clipboard.writeText(token);
    dialog.show({ status: TEXTS.copied });
  } catch {
    dialog.show({ problem: MESSAGES.notCopied });
  }
}

/** @param {ListDialog<AccessToken>} dialog @param {unknown} made @param {() => void} forget what was made */
const list = (dialog, made, forget) => html`
  <p>${MESSAGES.about}</p>
  ${made}
  <ul>
    ${repeat(dialog.rows ?? [], ({ id }) => id, (token) => row(token, dialog, forget))}
  </ul>
`;

/** @param {(event: SubmitEvent) => void} make */
const newTokenForm = (make) => html`
  <form class="new" @submit=${make}>
    <label for="token-name">${MESSAGES.name}</label>
    <input id="token-name" name="name" required maxlength="100" autocomplete="off" placeholder=${MESSAGES.example} />
    <fieldset>
      <legend>${MESSAGES.scopes}</legend>
      ${SCOPES.map((scope) => html`<label><input type="checkbox" name="scope" value=${scope} /> ${MESSAGES.allows[scope]}</label>`)}
    </fieldset>
    <label for="token-days">${MESSAGES.expiry}</label>
    <select id="token-days" name="days">
      ${DAYS.map((days) => html`<option value=${days} ?selected=${days === USUAL_DAYS}>${MESSAGES.days(days)}</option>`)}
    </select>
    <button type="submit" class="button primary">${MESSAGES.make}</button>
  </form>
`;

/** @param {string} token @param {() => void} copy */
const newToken = (token, copy) => html`
  <label for="new-token">${MESSAGES.made}</label>
  <input id="new-token" readonly .value=${token} translate="no" @focus=${select} />
  ${navigator.clipboard // needs https or localhost
    ? html`<button type="button" class="button primary" @click=${copy}>${TEXTS.copy}</button>`
    : nothing}
`;

/** @param {AccessToken} token @param {ListDialog<AccessToken>} dialog @param {() => void} forget */
function row({ id, name, scopes, last_used, expires }, dialog, forget) {
  const used = last_used ? MESSAGES.lastUsed(timeWords(new Date(last_used))) : MESSAGES.neverUsed;
  const until = MESSAGES.expires(new Intl.DateTimeFormat(undefined, { dateStyle: "medium" }).format(new Date(expires)));
  const end = (/** @type {MouseEvent} */ click) => {
    forget();
    void dialog.end(`tokens/${id}`, click);
  };
  const allowed = scopes.map((scope) => MESSAGES.allows[scope]).join(", ");
  return html`
    <li>
      <div><bdi translate="no">${name}</bdi><br /><span class="quiet">${allowed}. ${used} ${until}</span></div>
      <button type="button" class="button" aria-label=${MESSAGES.endOne(name)} @click=${end}>${MESSAGES.end}</button>
    </li>
  `;
}

/** @param {FocusEvent} event */
const select = ({ target }) => target instanceof HTMLInputElement && target.select();

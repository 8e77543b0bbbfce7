// @ts-check
import { timeWords } from "./chat/days.js";
import { sentence } from "./chat/protocol.js";
import { fetchFromHere } from "./http.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";

const MESSAGES = TEXTS.accessTokens;
const SCOPES = /** @type {const} */ (["chat", "tasks", "tasks:read"]);
const DAYS = /** @type {const} */ ([30, 90, 365, 3650]);
const USUAL_DAYS = 90;

/** @typedef {typeof SCOPES[number]} Scope */

/** A token as it is listed. @typedef {{id: string, name: string, scopes: Scope[], last_used: string | null, expires: string}} AccessToken */

/**
 * @typedef {object} State
 * @property {AccessToken[]} tokens the last used first; empty until they are loaded
 * @property {string} [made] a new token, which is shown once
 * @property {string} [status]
 * @property {string} [problem]
 */

/** @typedef {{make: (event: SubmitEvent) => void, end: (id: string, click: MouseEvent) => void, copy: () => void}} Actions */

/** Shows the dialog that makes, lists and ends tokens for the user's programs. @param {() => void} unauthorized */
export async function showAccessTokens(unauthorized) {
  const dialog = document.createElement("dialog");
  dialog.className = "sheet access-tokens";
  dialog.setAttribute("aria-labelledby", "access-tokens-title");
  dialog.addEventListener("close", () => dialog.remove()); // the dialog contains the token
  /** @type {State} */
  let state = { tokens: [] };
  let isBusy = false;
  /** @param {Partial<State>} now */
  const draw = (now) => {
    state = { ...state, status: undefined, problem: undefined, ...now };
    render(content(state, { make, end, copy }), dialog);
  };
  /** @param {SubmitEvent} event */
  const make = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    const form = /** @type {HTMLFormElement} */ (event.target);
    const fields = new FormData(form);
    const body = { name: String(fields.get("name")).trim(), scopes: fields.getAll("scope"), days: Number(fields.get("days")) };
    if (!body.scopes.length) return draw({ problem: MESSAGES.noScope });
    isBusy = true;
    draw({ made: undefined });
    const response = await ask("POST", "tokens", body);
    if (response) {
      const { token } = await response.json();
      form.reset();
      await load({ made: token });
      dialog.querySelector("input")?.focus(); // that of the token
    }
    isBusy = false;
  };
  /** @param {string} id @param {MouseEvent} click */
  const end = async (id, { detail }) => {
    if (isBusy || detail > 1) return; // at a double click, another button is below the pointer
    isBusy = true;
    draw({}); // announces the second status like the first
    if (await ask("DELETE", `tokens/${id}`)) {
      await load({ made: undefined, status: MESSAGES.ended });
      dialog.querySelector("h2")?.focus(); // the clicked button is gone, or is now that of another token
    }
    isBusy = false;
  };
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(state.made ?? "");
      draw({ status: TEXTS.copied });
    } catch {
      draw({ problem: MESSAGES.notCopied });
    }
  };
  /** @param {Partial<State>} now */
  const load = async (now) => {
    const response = await ask("GET", "tokens");
    if (response) draw({ tokens: (await response.json()).tokens, ...now });
    else if (now.made) draw({ ...now, problem: state.problem }); // it is shown only now
  };
  /** @param {string} method @param {string} path @param {object} [body] */
  const ask = async (method, path, body) => {
    const init = body ? { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {};
    const response = await fetchFromHere(path, { method, ...init }).catch(() => null);
    const isGone = method === "DELETE" && response?.status === 404; // it was ended elsewhere
    if (response?.ok || isGone) return response;
    if (response?.status === 401) return unauthorized();
    draw({ problem: response ? await sentence(response) : TEXTS.unreachable });
  };
  draw({});
  document.body.append(dialog);
  dialog.showModal();
  await load({});
}

/** @param {State} state @param {Actions} actions */
const content = ({ tokens, made, status, problem }, { make, end, copy }) => html`
  <h2 id="access-tokens-title" tabindex="-1" autofocus>${MESSAGES.title}</h2>
  <p>${MESSAGES.about}</p>
  ${made ? newToken(made, copy) : nothing}
  <ul>
    ${repeat(tokens, ({ id }) => id, (token) => row(token, end))}
  </ul>
  <p class="quiet" role="status" translate="no">${status ?? ""}</p>
  ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
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
  <form method="dialog">
    <button type="submit" class="button">${TEXTS.close}</button>
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

/** @param {AccessToken} token @param {(id: string, click: MouseEvent) => void} end */
function row({ id, name, scopes, last_used, expires }, end) {
  const used = last_used ? MESSAGES.lastUsed(timeWords(new Date(last_used))) : MESSAGES.neverUsed;
  const until = MESSAGES.expires(new Intl.DateTimeFormat(undefined, { dateStyle: "medium" }).format(new Date(expires)));
  const allowed = scopes.map((scope) => MESSAGES.allows[scope]).join(", ");
  return html`
    <li>
      <div><bdi translate="no">${name}</bdi><br /><span class="quiet">${allowed}. ${used} ${until}</span></div>
      <button type="button" class="button" aria-label=${MESSAGES.endOne(name)} @click=${(/** @type {MouseEvent} */ click) => end(id, click)}>${MESSAGES.end}</button>
    </li>
  `;
}

/** @param {FocusEvent} event */
const select = ({ target }) => target instanceof HTMLInputElement && target.select();

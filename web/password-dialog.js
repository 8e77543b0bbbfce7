// @ts-check
import { sentence } from "./chat/protocol.js";
import { fetchFromHere, user } from "./http.js";
import { MAX_LENGTH, MIN_LENGTH } from "./password-forms.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
/** @import {Unsaved} from "./unsaved.js" */

const MESSAGES = TEXTS.passwords;

/** Shows the dialog in which a user changes the password, which begins another session. @param {{say: (text: string) => void, unauthorized: () => void, unsaved: Unsaved}} page */
export function showPassword({ say, unauthorized, unsaved }) {
  const dialog = document.createElement("dialog");
  dialog.className = "sheet password";
  dialog.setAttribute("aria-labelledby", "password-title");
  dialog.addEventListener("close", () => dialog.remove());
  let isSending = false;
  /** @param {string} [problem] */
  const draw = (problem) => render(content(submit, () => dialog.close(), problem), dialog);
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    if (isSending) return;
    isSending = true;
    draw(); // announces the second problem like the first
    const values = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const body = JSON.stringify({ old: values.get("old"), new: values.get("new") });
    const response = await fetchFromHere("session/password", { method: "PUT", headers: { "Content-Type": "application/json" }, body }).catch(() => null);
    isSending = false;
    if (response?.status === 401) return unauthorized();
    if (response?.ok) {
      const { user_id: id, session_id: session, name } = await response.json();
      user.set(id, session, name);
      unsaved.confirm(session);
      dialog.close();
      return say(MESSAGES.changed);
    }
    draw(response ? await sentence(response) : TEXTS.unreachable);
    const wrong = response?.status === 403 ? "old" : "new";
    /** @type {HTMLInputElement | null} */ (dialog.querySelector(`[name=${wrong}]`))?.select();
  };
  draw();
  document.body.append(dialog);
  dialog.showModal();
}

/** @param {(event: SubmitEvent) => void} submit @param {() => void} cancel @param {string} [problem] */
const content = (submit, cancel, problem) => html`
  <h2 id="password-title">${MESSAGES.change}</h2>
  <p class="quiet">${MESSAGES.changeAbout}</p>
  <form @submit=${submit}>
    <input type="text" name="username" autocomplete="username" .value=${user.id ?? ""} readonly hidden />
    <label for="old-password">${MESSAGES.old}</label>
    <input id="old-password" name="old" type="password" autocomplete="current-password" maxlength=${MAX_LENGTH} required autofocus />
    <label for="new-password">${MESSAGES.new}</label>
    <input id="new-password" name="new" type="password" autocomplete="new-password" minlength=${MIN_LENGTH} maxlength=${MAX_LENGTH} aria-describedby="password-rule" required />
    <p id="password-rule" class="quiet">${MESSAGES.rule}</p>
    ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
    <div class="row">
      <button type="button" class="button" @click=${cancel}>${TEXTS.cancel}</button>
      <button type="submit" class="button primary">${MESSAGES.save}</button>
    </div>
  </form>
`;

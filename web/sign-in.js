// @ts-check
import { sentence } from "./chat/protocol.js";
import { storage, visit } from "./chat/storage.js";
import { closeOffline } from "./offline.js";
import { firstAccountForm, passwordForm } from "./password-forms.js";
import { fragment } from "./router.js";
import { TEXTS } from "./texts.js";
import { fetchFromHere, user } from "./http.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
/** @import {Config} from "./options.js" */

/**
 * A form, with what it sends for its values; the first response that sets a cookie signs in.
 * @typedef {object} Form
 * @property {(submit: (event: SubmitEvent) => void, problem: string | undefined, draw: () => void) => unknown} render
 * @property {(values: FormData) => Promise<Response>} send
 * @property {string} [rejected] what a response 401 means; else the server's sentence says it
 */

/**
 * Shows the form with which the user signs in: by a name and a password, or by a token.
 * @param {HTMLElement} place
 * @param {() => void} done
 * @param {Config["auth"]} auth
 */
export function showSignIn(place, done, auth) {
  const panel = document.createElement("div");
  panel.className = "sign-in";
  place.replaceChildren(panel);
  let form = auth === "password" ? passwordForm() : tokenForm;
  const code = auth === "password" ? fragment.get("setup") : null;
  if (code !== null) form = firstAccountForm(code, () => show(passwordForm()));
  let isSending = false;
  /** @param {string} [problem] */
  const draw = (problem) => render(form.render(submit, problem, () => draw(problem)), panel);
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    if (isSending) return;
    isSending = true;
    draw(); // announces the second error like the first
    const problem = await signIn(form, new FormData(/** @type {HTMLFormElement} */ (event.target)));
    isSending = false;
    if (problem === null) {
      fragment.delete("setup");
      return done();
    }
    draw(problem);
    /** @type {HTMLInputElement | null} */ (panel.querySelector("input[data-secret]"))?.select();
  };
  /** @param {Form} other */
  const show = (other) => {
    form = other;
    fragment.delete("setup");
    draw();
    panel.querySelector("input")?.focus();
  };
  draw();
  panel.querySelector("input")?.focus();
}

/** Ends the user's session; returns whether the user is signed out, and whether another one is signed in. */
export async function endSession() {
  const response = await fetchFromHere("session", { method: "DELETE" }).catch(() => null);
  const hasOther = response?.status === 401;
  return { ended: hasOther || response?.ok === true, hasOther };
}

/** Removes everything of the user from the browser's storage. */
export async function forget() {
  storage.clear("todo.");
  visit.clear("todo.tasks.");
  await closeOffline();
}

/** @param {Form} form @param {FormData} values @returns {Promise<string | null>} why it was rejected */
async function signIn({ send, rejected }, values) {
  const response = await send(values).catch(() => null);
  if (!response) return TEXTS.unreachable;
  if (response.status === 401 && rejected) return rejected;
  if (!response.ok) return sentence(response);
  const { user_id: userId, session_id: session } = await response.json();
  if (user.last !== null && userId !== user.last) await forget(); // what is stored belongs to another user
  user.set(userId, session);
  return null;
}

/** @type {Form} */
const tokenForm = {
  render: (submit, problem) => html`
    <form @submit=${submit}>
      <h2>${TEXTS.signIn.title}</h2>
      <p class="quiet">${TEXTS.signIn.how}</p>
      <label for="token">${TEXTS.signIn.token}</label>
      <input id="token" name="token" type="password" autocomplete="off" required data-secret />
      ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
      <button type="submit" class="button primary">${TEXTS.signIn.enter}</button>
    </form>
  `,
  send: (values) => fetch("session", { method: "POST", headers: { Authorization: `Bearer ${String(values.get("token")).trim()}` } }),
  rejected: TEXTS.signIn.rejected,
};

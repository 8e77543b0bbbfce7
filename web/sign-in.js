// @ts-check
import { sentence } from "./chat/protocol.js";
import { storage, visit } from "./chat/storage.js";
import { pathBelowBase } from "./address.js";
import { closeOffline } from "./offline.js";
import { firstAccountForm, passwordForm } from "./password-forms.js";
import { fragment } from "./router.js";
import { TEXTS } from "./texts.js";
import { fetchFromHere, user } from "./http.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
/** @import {Config} from "./options.js" */

/** What the address of this page may have to be returned to, as the server checks it. */
const ADDRESS = /^\/([\w.~%!$&'()*+,;=:@?-][\w.~%!$&'()*+,;=:@/?-]{0,1900})?$/;

/**
 * A form, with what it sends for its values; the first response that sets a cookie signs in.
 * @typedef {object} Form
 * @property {(submit: (event: SubmitEvent) => void, problem: string | undefined, draw: () => void, isSending: boolean) => unknown} render
 * @property {(values: FormData) => Promise<Response>} send
 * @property {string} [rejected] what a response 401 means; else the server's sentence says it
 */

/**
 * Shows how the user signs in: at the identity provider, at the proxy, or by a name and a password, or a token.
 * @param {HTMLElement} place
 * @param {() => void} done
 * @param {Config} config
 */
export function showSignIn(place, done, { auth, provider }) {
  const panel = document.createElement("div");
  panel.className = "sign-in";
  place.replaceChildren(panel);
  if (auth === "oidc") return showButton(panel, TEXTS.signIn.at(provider ?? ""), TEXTS.signIn.leads, goToProvider);
  if (auth === "proxy") return showButton(panel, TEXTS.signIn.enter, TEXTS.signIn.proxy, goToProxy);
  let form = auth === "password" ? passwordForm() : tokenForm;
  const code = auth === "password" ? fragment.get("setup") : null;
  if (code !== null) form = firstAccountForm(code, () => show(passwordForm()));
  let isSending = false;
  /** @param {string} [problem] */
  const draw = (problem) => render(form.render(submit, problem, () => draw(problem), isSending), panel);
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

/** Ends the user's session; returns whether the user is signed out, whether another one is signed in, and where to sign out as well. */
export async function endSession() {
  const response = await fetchFromHere("session", { method: "DELETE" }).catch(() => null);
  const hasOther = response?.status === 401;
  /** @type {string | null} */
  const continueAt = response?.status === 200 ? (await response.json()).url : null;
  return { ended: hasOther || response?.ok === true, hasOther, continueAt };
}

/** Removes everything of the user from the browser's storage. */
export async function forget() {
  storage.clear("todo.");
  visit.clear("todo.tasks.");
  await closeOffline();
}

/** Shows a button that leads to where users sign in. @param {HTMLElement} panel @param {string} label @param {string} how @param {() => Promise<string | null>} go returns why it failed */
function showButton(panel, label, how, go) {
  /** @param {string | null} [problem] */
  const draw = (problem) =>
    render(
      html`<form @submit=${submit}>
        <h2>${TEXTS.signIn.title}</h2>
        <p class="quiet">${how}</p>
        ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
        <button type="submit" class="button primary">${label}</button>
      </form>`,
      panel,
    );
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    draw(); // announces the second error like the first
    draw(await go());
  };
  draw();
  panel.querySelector("button")?.focus();
}

/** Goes to the identity provider, which leads back to this address. */
async function goToProvider() {
  const address = "/" + (pathBelowBase(location.pathname) ?? "") + location.search;
  const query = new URLSearchParams({ return_to: ADDRESS.test(address) ? address : "/" });
  const response = await fetch(`session/provider?${query}`, { method: "POST" }).catch(() => null);
  if (!response) return TEXTS.unreachable;
  if (!response.ok) return sentence(response);
  location.assign((await response.json()).url);
  return null;
}

/** Goes to an address that no service worker answers, so that the proxy asks who the user is. */
async function goToProxy() {
  location.assign("session/callback");
  return null;
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
  render: (submit, problem, _, isSending) => html`
    <form @submit=${submit} aria-busy=${isSending}>
      <h2>${TEXTS.signIn.title}</h2>
      <p class="quiet">${TEXTS.signIn.how}</p>
      <label for="token">${TEXTS.signIn.token}</label>
      <input id="token" name="token" type="password" autocomplete="off" required data-secret />
      ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
      <button type="submit" class="button primary">${isSending ? TEXTS.signIn.checking : TEXTS.signIn.enter}</button>
    </form>
  `,
  send: (values) => fetch("session", { method: "POST", headers: { Authorization: `Bearer ${String(values.get("token")).trim()}` } }),
  rejected: TEXTS.signIn.rejected,
};

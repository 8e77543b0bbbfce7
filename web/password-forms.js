// @ts-check
import { TEXTS } from "./texts.js";
import { html, nothing } from "./vendor/lit-html/lit-html.js";
/** @import {Form} from "./sign-in.js" */

const MESSAGES = TEXTS.passwords;
export const MIN_LENGTH = 8; // as in backend/accounts/passwords.py
export const MAX_LENGTH = 1000;

/** @param {string} path @param {Record<string, unknown>} body */
const post = (path, body) => fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

/** Returns the form with which a user signs in by a name and a password. @returns {Form} */
export function passwordForm() {
  const shown = { now: false };
  return {
    render: (submit, problem, draw, isSending) => html`
      <form @submit=${submit} aria-busy=${isSending}>
        <h2>${TEXTS.signIn.title}</h2>
        ${nameField()} ${passwordField(shown, "current-password", draw)}
        ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
        <button type="submit" class="button primary">${isSending ? TEXTS.signIn.checking : TEXTS.signIn.enter}</button>
        <p class="quiet">${MESSAGES.ask}</p>
      </form>
    `,
    send: (values) => post("session", { name: values.get("name"), password: values.get("password") }),
  };
}

/**
 * Returns the form that makes the first account for a one-time code.
 * @param {string} code
 * @param {() => void} signIn shows the form for users who have an account
 * @returns {Form}
 */
export function firstAccountForm(code, signIn) {
  const shown = { now: false };
  return {
    render: (submit, problem, draw, isSending) => html`
      <form @submit=${submit} aria-busy=${isSending}>
        <h2>${MESSAGES.first}</h2>
        <p class="quiet">${MESSAGES.firstAbout}</p>
        ${nameField()} ${passwordField(shown, "new-password", draw)}
        ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
        <button type="submit" class="button primary">${isSending ? TEXTS.signIn.checking : MESSAGES.make}</button>
        <button type="button" class="button" @click=${signIn}>${MESSAGES.haveAccount}</button>
      </form>
    `,
    send: (values) => post("setup", { code, name: values.get("name"), password: values.get("password") }),
  };
}

const nameField = () => html`
  <label for="name">${MESSAGES.name}</label>
  <input id="name" name="name" type="text" dir="auto" autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="200" required />
`;

/** @param {{now: boolean}} shown @param {"current-password" | "new-password"} autocomplete @param {() => void} draw */
function passwordField(shown, autocomplete, draw) {
  const isNew = autocomplete === "new-password";
  const toggle = () => {
    shown.now = !shown.now;
    draw();
  };
  return html`
    <label for="password">${MESSAGES.password}</label>
    <input id="password" name="password" type=${shown.now ? "text" : "password"} autocomplete=${autocomplete} minlength=${isNew ? MIN_LENGTH : nothing} maxlength=${MAX_LENGTH} aria-describedby=${isNew ? "password-rule" : nothing} autocapitalize="none" spellcheck="false" required data-secret />
    ${isNew ? html`<p id="password-rule" class="quiet">${MESSAGES.rule}</p>` : nothing}
    <button type="button" class="button show" aria-pressed=${shown.now} @click=${toggle}>${MESSAGES.show}</button>
  `;
}

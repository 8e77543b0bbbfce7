// @ts-check
import { sentence } from "./chat/protocol.js";
import { storage, visit } from "./chat/storage.js";
import { closeOffline } from "./offline.js";
import { TEXTS } from "./texts.js";
import { fetchFromHere, user } from "./http.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";

/**
 * Shows the form that exchanges a token for a session.
 * @param {HTMLElement} place
 * @param {() => void} done
 */
export function showSignIn(place, done) {
  const panel = document.createElement("div");
  panel.className = "sign-in";
  place.replaceChildren(panel);
  /** @param {string} [problem] */
  const draw = (problem) => render(form(submit, problem), panel);
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    const field = /** @type {HTMLInputElement} */ (panel.querySelector("input"));
    draw(); // announces the second error like the first
    const problem = await signIn(field.value.trim());
    if (problem === null) return done();
    draw(problem);
    field.select();
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

/** @param {string} token @returns {Promise<string | null>} why it was rejected */
async function signIn(token) {
  const response = await fetch("session", { method: "POST", headers: { Authorization: `Bearer ${token}` } }).catch(() => null);
  if (!response) return TEXTS.unreachable;
  if (response.status === 401) return TEXTS.signIn.rejected;
  if (!response.ok) return sentence(response);
  const { user_id: userId, session_id: session } = await response.json();
  if (user.last !== null && userId !== user.last) await forget(); // what is stored belongs to another user
  user.set(userId, session);
  return null;
}

/** @param {(event: SubmitEvent) => void} submit @param {string} [problem] */
const form = (submit, problem) => html`
  <form @submit=${submit}>
    <h2>${TEXTS.signIn.title}</h2>
    <p class="quiet">${TEXTS.signIn.how}</p>
    <label for="token">${TEXTS.signIn.token}</label>
    <input id="token" type="password" autocomplete="off" required />
    ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
    <button type="submit" class="button primary">${TEXTS.signIn.enter}</button>
  </form>
`;

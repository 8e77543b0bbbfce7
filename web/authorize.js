// @ts-check
// Asks the user whether a program may use their tasks. The program's request is in the query of the address.
import { sentence } from "./chat/protocol.js";
import { user } from "./http.js";
import { byId } from "./shell/elements.js";
import { showSignIn } from "./sign-in.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
/** @import {Session} from "./http.js" */
/** @import {Config} from "./options.js" */

/** What the program asks for. @typedef {{name: string, host: string | null, address: string, scopes: string[], problem: string | null}} Authorization */

const MESSAGES = TEXTS.authorize;
const REQUEST = `authorization${location.search}`;
/** For so long nothing can be pressed after the question appears: a page before it may have asked for a double click. */
const PAUSE = 500; // ms
const main = byId("tasks");
/** @type {Config} */
const config = JSON.parse(byId("config").textContent ?? "");

void begin();

async function begin() {
  const session = await user.ask();
  if (session === undefined) return showProblem(TEXTS.unreachable, tryAgain);
  if (session === null) return showSignIn(main, begin, config);
  const response = await send(session);
  if (response === null) return showProblem(TEXTS.unreachable, tryAgain);
  if (response.status === 401) return showSignIn(main, begin, config);
  if (!response.ok) return showProblem(await sentence(response), toTasks);
  ask(session, await response.json());
}

/** @param {Session} session @param {{allow: boolean}} [decision] without one, it asks what the program wants */
async function send({ id }, decision) {
  const headers = window.early.headersOf(id);
  if (decision) headers.set("Content-Type", "application/json");
  const init = decision ? { method: "POST", body: JSON.stringify(decision) } : {};
  return fetch(REQUEST, { ...init, headers, cache: "no-store" }).catch(() => null);
}

/** @param {Session} session @param {Authorization} authorization */
function ask(session, authorization) {
  /** @param {boolean} allow */
  const decide = async (allow) => {
    const response = await send(session, { allow });
    if (response === null) return draw(TEXTS.unreachable);
    if (response.status === 401) return showSignIn(main, begin, config);
    if (!response.ok) return draw(await sentence(response));
    const { location: address } = await response.json();
    show(html`<h2 tabindex="-1">${MESSAGES.done}</h2>`); // another program is opened beside this page
    location.assign(address);
  };
  /** @param {string} [problem] */
  const draw = (problem) => {
    show(authorization.problem === null ? question(session, authorization, decide, problem) : refusal(authorization, decide, problem));
    pause();
  };
  addEventListener("focus", pause);
  draw();
}

function pause() {
  const buttons = [...main.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  setTimeout(() => buttons.forEach((button) => (button.disabled = false)), PAUSE);
}

/** @param {unknown} content */
function show(content) {
  const panel = document.createElement("div");
  panel.className = "question";
  main.replaceChildren(panel);
  render(content, panel);
  panel.querySelector("h2")?.focus();
}

/** @param {string} problem @param {unknown} [more] */
const showProblem = (problem, more = nothing) => show(html`<h2 tabindex="-1">${MESSAGES.cannot}</h2><p class="problem" role="alert">${problem}</p>${more}`);

const tryAgain = html`<div class="buttons"><button type="button" class="button primary" @click=${() => location.reload()}>${MESSAGES.again}</button></div>`;

const toTasks = html`<div class="buttons"><a class="button" href=${document.baseURI}>${MESSAGES.tasks}</a></div>`;

/** @param {string | undefined} problem */
const alert = (problem) => (problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing);

/** @param {Session} session @param {Authorization} authorization @param {(allow: boolean) => void} decide @param {string} [problem] */
const question = ({ id }, { name, host, address, scopes }, decide, problem) => html`
  <h2 tabindex="-1">${MESSAGES.ask}</h2>
  <p>${MESSAGES.calls}<br /><bdi class="name" translate="no">${name}</bdi></p>
  <p class="quiet">${host === null ? MESSAGES.unproven : MESSAGES.proven(host)} ${MESSAGES.goes(address)}</p>
  <p>${MESSAGES.may}</p>
  <ul>
    ${scopes.map((scope) => html`<li>${TEXTS.clients.scopes[scope]}</li>`)}
  </ul>
  <p>${MESSAGES.careful}</p>
  <p class="quiet"><span translate="no">${MESSAGES.as(id)}</span> ${MESSAGES.later}</p>
  ${alert(problem)}
  <div class="buttons">
    <button type="button" class="button" @click=${() => decide(false)}>${MESSAGES.deny}</button>
    <button type="button" class="button primary" @click=${() => decide(true)}>${MESSAGES.allow}</button>
  </div>
`;

/** @param {Authorization} authorization @param {(allow: boolean) => void} decide @param {string} [problem] */
const refusal = ({ name, address, problem: reason }, decide, problem) => html`
  <h2 tabindex="-1">${MESSAGES.cannot}</h2>
  <p>${MESSAGES.calls}<br /><bdi class="name" translate="no">${name}</bdi></p>
  <p class="problem">${reason}</p>
  <p class="quiet">${MESSAGES.goes(address)}</p>
  ${alert(problem)}
  <div class="buttons"><button type="button" class="button" @click=${() => decide(false)}>${MESSAGES.back}</button></div>
`;

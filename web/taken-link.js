// @ts-check
import { sentence } from "./chat/protocol.js";
import { user } from "./http.js";
import { forget } from "./sign-in.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";

const MESSAGES = TEXTS.takenLink;

/**
 * Asks whether this browser shall use the tasks of whoever made a link. Nothing is sent before the user agrees.
 * @param {HTMLElement} place
 * @param {string} code
 * @param {() => void} done
 */
export function offerTasks(place, code, done) {
  const panel = addPanel(place);
  let isTaking = false;
  /** @param {string} [problem] */
  const draw = (problem) => render(offer({ agree, refuse: done }, problem), panel);
  /** @param {SubmitEvent} event */
  const agree = async (event) => {
    event.preventDefault();
    if (isTaking) return;
    isTaking = true;
    draw(); // announces the second error like the first
    const problem = await takeLink(code);
    isTaking = false;
    if (problem === null) return done();
    draw(problem);
  };
  draw();
  panel.querySelector("button")?.focus();
}

/** Tells that this device is not linked to the computer that has the tasks. @param {HTMLElement} place */
export function showNotLinked(place) {
  render(
    html`
      <form>
        <h2 tabindex="-1">${MESSAGES.notLinked}</h2>
        <p>${MESSAGES.notLinkedHow}</p>
      </form>
    `,
    addPanel(place),
  );
  place.querySelector("h2")?.focus();
}

/** @param {HTMLElement} place */
function addPanel(place) {
  const panel = document.createElement("div");
  panel.className = "sign-in";
  place.replaceChildren(panel);
  return panel;
}

/** @param {string} code @returns {Promise<string | null>} why it was rejected */
async function takeLink(code) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch("links/take", { method: "POST", headers, body: JSON.stringify({ code }) }).catch(() => null);
  if (!response) return TEXTS.unreachable;
  if (!response.ok) return sentence(response);
  const { user_id: userId, session_id: session } = await response.json();
  if (user.last !== null && userId !== user.last) await forget(); // what is stored belongs to another user
  user.set(userId, session);
  return null;
}

/** @param {{agree: (event: SubmitEvent) => void, refuse: () => void}} can @param {string} [problem] */
const offer = ({ agree, refuse }, problem) => html`
  <form @submit=${agree}>
    <h2>${MESSAGES.title}</h2>
    <p class="quiet">${MESSAGES.about}</p>
    ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
    <button type="submit" class="button primary">${MESSAGES.agree}</button>
    <button type="button" class="button" @click=${refuse}>${MESSAGES.refuse}</button>
  </form>
`;

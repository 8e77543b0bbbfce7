// @ts-check
import { sentence } from "./chat/protocol.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";

const SAID = TEXTS.memory;

/**
 * @typedef {object} State
 * @property {string} [version] of the text that the server has; none until it has said so
 * @property {string} [said] how much of it is read
 * @property {string} [other] what the text is by now, where it was changed elsewhere
 * @property {string} [problem]
 */

/** Show the dialog in which a person writes what they want remembered. */
export async function showMemory() {
  const dialog = document.createElement("dialog");
  dialog.className = "sheet memory";
  dialog.setAttribute("aria-labelledby", "memory-title");
  dialog.addEventListener("close", () => dialog.remove());
  /** @type {State} */
  let state = {};
  /** @param {Partial<State>} now */
  const draw = (now) => {
    state = { ...state, said: "", problem: undefined, other: undefined, ...now };
    render(content(state, save), dialog);
  };
  /** @param {RequestInit} [change] */
  const ask = async (change) => {
    const response = await fetch("/memory", change).catch(() => null);
    if (!response) return draw({ problem: TEXTS.unreachable });
    if (response.ok) return response;
    draw({ problem: await sentence(response) });
    if (response.status === 412) await compare();
  };
  const field = () => /** @type {HTMLTextAreaElement} */ (dialog.querySelector("textarea"));
  const save = async () => {
    const headers = { "Content-Type": "application/json", "If-Match": state.version ?? "" };
    const saved = await ask({ method: "PUT", headers, body: JSON.stringify({ text: field().value }) });
    if (saved) draw({ version: versionOf(saved), said: `${SAID.saved} ${read(await saved.json())}` });
  };
  /** What is written here stays, beside what was written elsewhere. */
  const compare = async () => {
    const now = await ask();
    if (now) draw({ version: versionOf(now), other: (await now.json()).text, problem: SAID.changed });
  };
  draw({});
  document.body.append(dialog);
  dialog.showModal();
  const first = await ask();
  if (!first) return;
  const found = await first.json();
  field().value = found.text;
  draw({ version: versionOf(first), said: read(found) });
  field().focus();
}

/** @param {Response} response */
const versionOf = (response) => response.headers.get("ETag") ?? "";

/** @param {{lines: number, lines_read: number}} found */
const read = ({ lines, lines_read }) => (lines_read < lines ? SAID.tooLong(lines_read, lines) : "");

/** @param {State} state @param {() => void} save */
const content = ({ version, said, other, problem }, save) => html`
  <h2 id="memory-title">${SAID.title}</h2>
  <p id="memory-about">${SAID.about}</p>
  <textarea aria-labelledby="memory-title" aria-describedby="memory-about" rows="8" ?disabled=${version === undefined}></textarea>
  <p class="quiet" role="status">${said}</p>
  ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
  ${other === undefined
    ? nothing
    : html`<label for="memory-other">${SAID.other}</label><textarea id="memory-other" rows="3" readonly .value=${other}></textarea>`}
  <form method="dialog">
    <button type="button" class="button primary" ?disabled=${version === undefined} @click=${save}>${TEXTS.save}</button>
    <button type="submit" class="button">${TEXTS.close}</button>
  </form>
`;

// @ts-check
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { iconButton } from "../../icons.js";
import { LIST, TEXTS } from "../../texts.js";
import { INPUTS } from "../fields.js";
import { selectView } from "./tools.js";
/** @import {Editing} from "../editing.js" */
/** @import {Input} from "../fields.js" */
/** @import {Ui} from "../ui.js" */

/** Renders the fields of the edited task. @param {Editing} editing @param {Ui} ui */
export function editingView(editing, ui) {
  const written = (/** @type {Event} */ { target }) => {
    const { name, value } = /** @type {HTMLInputElement} */ (target);
    if (!(name in editing.written) || ui.editing !== editing) return; // a form that is removed says that it has changed
    editing.write(name, value);
    if (target instanceof HTMLSelectElement) ui.changed(); // it may show another input
  };
  const { problem, deleted } = editing;
  return html`
    <form
      class="task-form"
      autocomplete="off"
      @input=${written}
      @change=${written}
      @keydown=${(/** @type {KeyboardEvent} */ event) => keydown(event, ui)}
      @submit=${(/** @type {Event} */ event) => {
        event.preventDefault();
        void ui.editor.end(true);
      }}
    >
      ${deleted ? html`<p class="elsewhere" role="status">${LIST.deletedElsewhere}</p>` : nothing}
      ${INPUTS.filter(({ lines }) => lines).map((input) => [area(input, editing), notesOf(input, editing, ui)])}
      <div class="fields">${INPUTS.filter(({ lines, shown }) => !lines && (shown?.(editing.written) ?? true)).map((input) => [field(input, editing), notesOf(input, editing, ui)])}</div>
      ${editing.files}
      ${problem && !problem.input ? html`<p class="problem" role="alert">${problem.text}</p>` : nothing}
      <div class="ends">
        <div>
          ${deleted ? nothing : iconButton("remove", LIST.remove, () => ui.remove([editing.task]))}
          ${ui.agents && editing.task.status === "pending" && editing.task.id > 0 && !deleted
            ? html`<button type="button" class="text-button" @click=${() => ui.editor.delegate()}>${TEXTS.delegate}</button>`
            : nothing}
        </div>
        <div>
          <button type="button" class="button" @click=${() => ui.editor.end(false)}>${deleted ? LIST.discard : TEXTS.cancel}</button>
          <button type="submit" class="button primary">${deleted ? LIST.restoreAndSave : TEXTS.save}</button>
        </div>
      </div>
    </form>
  `;
}

/** Renders what is wrong with an input, and what was written in it elsewhere. @param {Input} input @param {Editing} editing @param {Ui} ui */
function notesOf({ name, label, options }, editing, ui) {
  const theirs = editing.elsewhere.get(name);
  const settle = (/** @type {boolean} */ mine) => () => {
    editing.settle(name, mine);
    ui.changed();
  };
  return html`
    ${editing.problem?.input === name ? html`<p class="problem" role="alert" id="problem-${name}">${editing.problem.text}</p>` : nothing}
    ${theirs === undefined
      ? nothing
      : html`<p class="elsewhere">
          <span role="status">${label}: ${LIST.changedElsewhere} “<bdi translate="no">${options?.[theirs] ?? theirs}</bdi>”</span>
          <button type="button" class="text-button" aria-label="${LIST.keepMine}: ${label}" @click=${settle(true)}>${LIST.keepMine}</button>
          <button type="button" class="text-button" aria-label="${LIST.takeTheirs}: ${label}" @click=${settle(false)}>${LIST.takeTheirs}</button>
        </p>`}
  `;
}

/** @param {Input} input @param {Editing} editing */
const area = ({ name, label, lines, hint }, { written, problem }) => html`
  <textarea
    name=${name}
    data-part=${name}
    rows=${lines}
    dir="auto"
    aria-label=${label}
    aria-invalid=${problem?.input === name ? "true" : nothing}
    aria-describedby=${problem?.input === name ? `problem-${name}` : nothing}
    placeholder=${hint ?? nothing}
    .value=${written[name]}
  ></textarea>
`;

/** @param {Input} input @param {Editing} editing */
const field = (input, { written, problem }) => html`
  <label class=${input.options ? nothing : (input.type ?? "text")}
    ><span>${input.label}</span>
    ${input.options ? selectView(input.name, Object.entries(input.options), written[input.name]) : line(input, written[input.name], problem?.input === input.name)}
  </label>
`;

/** @param {Input} input @param {string} value @param {boolean} wrong */
const line = ({ name, type = "text", hint }, value, wrong) => html`
  <input
    type=${type}
    name=${name}
    data-part=${name}
    dir=${type === "text" ? "auto" : nothing}
    aria-invalid=${wrong ? "true" : nothing}
    aria-describedby=${wrong ? `problem-${name}` : nothing}
    placeholder=${hint ?? nothing}
    .value=${value}
  />
`;

/** Enter saves (in longer texts with Ctrl or ⌘), Escape cancels. @param {KeyboardEvent} event @param {Ui} ui */
function keydown(event, ui) {
  const { key, target } = event;
  if (event.isComposing || event.keyCode === 229) return;
  const takesEnter = /** @type {HTMLElement} */ (target).matches("button, select, textarea:not([rows='1'])");
  const saves = key === "Enter" && (event.ctrlKey || event.metaKey || !takesEnter);
  if (!saves && key !== "Escape") return;
  event.preventDefault();
  event.stopPropagation();
  void ui.editor.end(saves);
}

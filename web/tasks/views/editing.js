// @ts-check
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { iconButton } from "../../icons.js";
import { LIST, TEXTS } from "../../texts.js";
import { INPUTS } from "../fields.js";
/** @import {Editing} from "../editing.js" */
/** @import {Input} from "../fields.js" */
/** @import {Ui} from "../ui.js" */

/** Renders the fields of the edited task. @param {Editing} editing @param {Ui} ui */
export function editingView(editing, ui) {
  const written = (/** @type {Event} */ { target }) => {
    const { name, value } = /** @type {HTMLInputElement} */ (target);
    if (name in editing.written) editing.write(name, value);
  };
  return html`
    <form
      class="task-form"
      autocomplete="off"
      @input=${written}
      @change=${written}
      @keydown=${(/** @type {KeyboardEvent} */ event) => keydown(event, ui)}
      @submit=${(/** @type {Event} */ event) => {
        event.preventDefault();
        void ui.endEditing(true);
      }}
    >
      ${INPUTS.filter(({ lines }) => lines).map((input) => area(input, editing))}
      <div class="fields">${INPUTS.filter(({ lines }) => !lines).map((input) => field(input, editing))}</div>
      ${editing.files}
      ${editing.problem ? html`<p class="problem" role="alert">${editing.problem}</p>` : nothing}
      <div class="ends">
        ${iconButton("remove", LIST.remove, () => ui.remove([editing.task]))}
        ${ui.agents && editing.task.status === "pending"
          ? html`<button type="button" class="text-button" @click=${() => ui.delegate()}>${TEXTS.delegate}</button>`
          : nothing}
        <span class="spacer"></span>
        <button type="button" class="button" @click=${() => ui.endEditing(false)}>${TEXTS.cancel}</button>
        <button type="submit" class="button primary">${TEXTS.save}</button>
      </div>
    </form>
  `;
}

/** @param {Input} input @param {Editing} editing */
const area = ({ name, label, lines, hint }, { written }) => html`
  <textarea name=${name} data-part=${name} rows=${lines} dir="auto" aria-label=${label} placeholder=${hint ?? nothing} .value=${written[name]}></textarea>
`;

/** @param {Input} input @param {Editing} editing */
const field = (input, { written }) => html`
  <label class=${input.options ? nothing : (input.type ?? "text")}
    ><span>${input.label}</span>
    ${input.options ? select(input.name, input.options, written[input.name]) : line(input, written[input.name])}
  </label>
`;

/** @param {Input} input @param {string} value */
const line = ({ name, type = "text", hint }, value) =>
  html`<input type=${type} name=${name} data-part=${name} dir=${type === "text" ? "auto" : nothing} placeholder=${hint ?? nothing} .value=${value} />`;

/** @param {string} name @param {Record<string, string>} options @param {string} chosen */
const select = (name, options, chosen) => html`
  <select name=${name} data-part=${name} .value=${chosen}>
    ${Object.entries(options).map(([value, text]) => html`<option value=${value} ?selected=${value === chosen}>${text}</option>`)}
  </select>
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
  void ui.endEditing(saves);
}

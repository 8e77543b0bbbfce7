// @ts-check
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { iconButton } from "../../icons.js";
import { LIST, TEXTS } from "../../texts.js";
/** @import {Editing} from "../editing.js" */
/** @import {Ui} from "../ui.js" */

const NAMES = LIST.editing;

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
      <textarea name="title" data-part="title" rows="1" dir="auto" aria-label=${NAMES.title} .value=${editing.written.title}></textarea>
      <textarea
        name="description"
        data-part="description"
        rows="2"
        dir="auto"
        aria-label=${NAMES.description}
        placeholder=${LIST.descriptionHint}
        .value=${editing.written.description}
      ></textarea>
      <div class="fields">
        ${input("date", NAMES.date, editing, { type: "date" })} ${input("time", NAMES.time, editing, { type: "time" })}
        ${input("repeat", NAMES.repeat, editing, { hint: LIST.repeatHint })}
        <label
          ><span>${LIST.priority}</span>
          <select name="priority" data-part="priority" .value=${editing.written.priority}>
            ${Object.entries(LIST.priorities).map(
              ([value, name]) => html`<option value=${value} ?selected=${value === editing.written.priority}>${name}</option>`,
            )}
          </select>
        </label>
        ${input("labels", NAMES.labels, editing, { hint: LIST.labelsHint })}
      </div>
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

/** @param {string} name @param {string} label @param {Editing} editing @param {{type?: string, hint?: string}} more */
const input = (name, label, { written }, { type = "text", hint }) => html`
  <label class=${type}
    ><span>${label}</span>
    <input type=${type} name=${name} data-part=${name} dir=${type === "text" ? "auto" : nothing} placeholder=${hint ?? nothing} .value=${written[name]} />
  </label>
`;

/** Enter saves (in the description with Ctrl or ⌘), Escape cancels. @param {KeyboardEvent} event @param {Ui} ui */
function keydown(event, ui) {
  const { key, target } = event;
  if (event.isComposing || event.keyCode === 229) return;
  const { name, localName } = /** @type {HTMLInputElement} */ (target);
  const saves = key === "Enter" && (event.ctrlKey || event.metaKey || (name !== "description" && localName !== "button" && localName !== "select"));
  if (!saves && key !== "Escape") return;
  event.preventDefault();
  event.stopPropagation();
  void ui.endEditing(saves);
}

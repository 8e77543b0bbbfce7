// @ts-check
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { iconButton } from "../../icons.js";
import { removeBidiControls } from "../../words.js";
import { LIST } from "../../texts.js";
import { Editing } from "../editing.js";
import { ROW_FIELDS } from "../fields.js";
/** @import {Task} from "../types" */
/** @import {Ui} from "../ui.js" */

/** @param {Task} task @param {Ui} ui @param {{place: number, of: number, day: string | null}} heading its place under it, of so many, and its day */
export function rowView(task, ui, { place, of, day }) {
  const { id, status } = task;
  const edited = ui.controls !== null && ui.editing?.task.id === id && !ui.editor.sheet;
  const tabindex = id === ui.tabStop ? "0" : "-1";
  const selected = ui.selection.ids.has(id);
  const classes = ["task", status, `urgency-${task.priority ?? "none"}`, selected ? "selected" : "", edited ? "edited" : ""];
  return html`
    <li
      class=${classes.join(" ")}
      data-row=${id}
      aria-posinset=${place}
      aria-setsize=${of}
      draggable=${status === "pending" && !edited ? "true" : nothing}
      ?data-shown=${ui.navigation.marked === id}
    >
      ${ui.selection.active ? selectBox(task, selected, tabindex, ui) : status === "deleted" ? nothing : tickBox(task, tabindex, ui)}
      ${edited && ui.editing ? ui.controls?.editingView(ui.editing, ui) : [body(task, tabindex, ui, day), unsavedMark(id, ui), actions(task, tabindex, ui)]}
    </li>
  `;
}

/** @param {Task} task @param {string} tabindex @param {Ui} ui */
const tickBox = (task, tabindex, ui) => html`
  <label class="tick">
    <input
      type="checkbox"
      data-part="tick"
      tabindex=${tabindex}
      aria-label=${removeBidiControls(LIST.tick(task.title))}
      .checked=${(ui.editing?.task.id === task.id ? ui.pending.apply(ui.editing.latest) : task).status === "completed"}
      @change=${(/** @type {Event} */ event) => ui.actions.tick([task], /** @type {HTMLInputElement} */ (event.target).checked)}
    />
  </label>
`;

/** @param {Task} task @param {boolean} selected @param {string} tabindex @param {Ui} ui */
const selectBox = (task, selected, tabindex, ui) => html`
  <label class="tick square">
    <input
      type="checkbox"
      data-part="tick"
      tabindex=${tabindex}
      aria-label=${removeBidiControls(LIST.selectOne(task.title))}
      .checked=${selected}
      @click=${(/** @type {MouseEvent} */ event) => ui.selection.pick(task, event.shiftKey)}
    />
  </label>
`;

/** @param {Task} task @param {string} tabindex @param {Ui} ui @param {string | null} day */
const body = (task, tabindex, ui, day) => html`
  <div class="about" translate="no">
    <button
      type="button"
      class="title"
      data-part="open"
      dir="auto"
      title=${removeBidiControls(task.title)}
      tabindex=${tabindex}
      aria-disabled=${task.status === "deleted" ? "true" : nothing}
      @click=${(/** @type {MouseEvent} */ event) => ui.editor.clicked(task, event)}
    >
      <span>${task.title}</span>
    </button>
    ${details(task, ui, day)}
  </div>
`;

/** @param {number} id @param {Ui} ui */
const unsavedMark = (id, ui) =>
  ui.pending.isUnsaved(id) || Editing.has(id, ui.unsaved) ? html`<span class="unsaved" role="img" aria-label=${LIST.notSaved} title=${LIST.notSaved}></span>` : nothing;

/** @param {Task} task @param {Ui} ui @param {string | null} day */
function details(task, ui, day) {
  const shown = ROW_FIELDS.map((row) => row(task, ui, day)).filter(Boolean);
  return shown.length > 0 ? html`<p class="details">${shown}</p>` : nothing;
}

/** @param {Task} task @param {string} tabindex @param {Ui} ui */
function actions(task, tabindex, ui) {
  if (ui.selection.active) return nothing;
  if (task.status === "deleted") {
    return html`<button type="button" class="text-button" data-part="restore" tabindex=${tabindex} @click=${() => ui.actions.restore([task])}>${LIST.restore}</button>`;
  }
  return html`
    <span class="actions">
      ${task.status === "pending" ? iconButton("calendar", `${LIST.moveOne}: ${task.title}`, () => ui.moveDialog.open([task]), { tabindex, command: "date" }) : nothing}
      ${iconButton("dots", `${LIST.more}: ${task.title}`, (event) => ui.rowMenu.open(task, event), { tabindex })}
    </span>
  `;
}

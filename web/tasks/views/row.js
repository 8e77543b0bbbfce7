// @ts-check
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { iconButton } from "../../icons.js";
import { LIST } from "../../texts.js";
import { FIELDS } from "../fields.js";
import { editingView } from "./editing.js";
/** @import {Task} from "../types" */
/** @import {Ui} from "../ui.js" */

/** @param {Task} task @param {Ui} ui @param {{place: number, of: number}} counted in its section, of which not all may be drawn */
export function rowView(task, ui, { place, of }) {
  const { id, status } = task;
  const edited = ui.editing?.task.id === id;
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
      ?data-shown=${ui.marked === id}
    >
      ${ui.selection.active ? selectBox(task, selected, tabindex, ui) : status === "deleted" ? nothing : tickBox(task, tabindex, ui)}
      ${edited && ui.editing ? editingView(ui.editing, ui) : [body(task, tabindex, ui), actions(task, tabindex, ui)]}
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
      aria-label=${LIST.tick(task.title)}
      .checked=${task.status === "completed"}
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
      aria-label=${LIST.selectOne(task.title)}
      .checked=${selected}
      @click=${(/** @type {MouseEvent} */ event) => ui.pick(task, event.shiftKey)}
    />
  </label>
`;

/** @param {Task} task @param {string} tabindex @param {Ui} ui */
const body = (task, tabindex, ui) => html`
  <div class="about" translate="no">
    <button
      type="button"
      class="title"
      data-part="open"
      dir="auto"
      tabindex=${tabindex}
      aria-disabled=${task.status === "deleted" ? "true" : nothing}
      @click=${(/** @type {MouseEvent} */ event) => ui.opened(task, event)}
    >
      ${task.title}
    </button>
    ${details(task, ui)}
  </div>
`;

/** @param {Task} task @param {Ui} ui */
function details(task, ui) {
  const shown = FIELDS.map(({ row }) => row?.(task, ui)).filter(Boolean);
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
      ${task.status === "pending" ? iconButton("calendar", `${LIST.moveOne}: ${task.title}`, () => ui.startMove([task]), { tabindex }) : nothing}
      ${iconButton("remove", `${LIST.remove}: ${task.title}`, () => ui.remove([task]), { tabindex })}
    </span>
  `;
}

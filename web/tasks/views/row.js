// @ts-check
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { icon, iconButton } from "../../icons.js";
import { LIST } from "../../texts.js";
import { dueWords, isPast, LANGUAGE } from "../../words.js";
import { repeatWords } from "../language/phrases.js";
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
  const { due, time, description, labels, priority, repeat } = task;
  const past = task.status === "pending" && isPast(task, ui.clock.now);
  const underDay = ui.view === "upcoming" || (ui.view === "today" && due === ui.today); // the heading names its day
  const words = due ? dueWords({ due: underDay ? null : due, time }, ui.today) : "";
  if (!words && !repeat && !priority && !description && labels.length === 0) return nothing;
  return html`
    <p class="details">
      ${words ? html`<span class="due ${past ? "past" : ""}" lang=${LANGUAGE}>${icon(underDay ? "clock" : "calendar")}${words}</span>` : nothing}
      ${repeat ? html`<span title=${repeatWords(repeat)}>${icon("repeat")}<span class="words">${repeatWords(repeat)}</span></span>` : nothing}
      ${priority ? html`<span class="priority ${priority}">${icon("flag")}${LIST.priorities[priority]}</span>` : nothing}
      ${description ? html`<span class="notes" dir="auto">${icon("notes")}<span class="words">${description}</span></span>` : nothing}
      ${labels.map((label) => html`<button type="button" class="label" tabindex="-1" dir="auto" @click=${() => ui.setFilter({ label })}>${label}</button>`)}
    </p>
  `;
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

// @ts-check
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { icon, iconButton } from "../../icons.js";
import { LIST } from "../../texts.js";
import { counted } from "../../words.js";
import { PRIORITIES } from "../fields.js";
/** @import {Icon} from "../../icons.js" */
/** @import {Filter, View} from "../types" */
/** @import {Ui} from "../ui.js" */

const MAX_COUNTED = 2000; // the server stops counting here
const VIEWS = /** @type {View[]} */ (Object.keys(LIST.views));

/** @param {Ui} ui */
export const viewsView = (ui) => html`
  <nav class="views" aria-label=${LIST.viewsName}>
    ${VIEWS.map(
      (view) => html`
        <button type="button" data-view=${view} aria-current=${view === ui.view ? "page" : nothing} @click=${() => ui.open(view)}>
          ${LIST.views[view]}
        </button>
      `,
    )}
  </nav>
`;

/** Renders search, filters and the button that begins a selection. @param {Ui} ui */
export function toolsView(ui) {
  const { pages, selection } = ui;
  const { label, priority } = pages.filter;
  const open = ui.filtersOpen || Boolean(label || priority);
  return html`
    <div class="tools" role="search">
      <label class="search">
        ${icon("search")}
        <input
          type="search"
          data-part="search"
          dir="auto"
          aria-label=${LIST.search}
          placeholder=${LIST.search}
          .value=${ui.searched}
          @input=${(/** @type {Event} */ event) => ui.search(/** @type {HTMLInputElement} */ (event.target).value)}
        />
      </label>
      <span class="quiet total" translate="no">${pages.current && pages.total > 0 ? `${counted(pages.total)}${pages.total === MAX_COUNTED ? "+" : ""}` : ""}</span>
      ${iconButton("filter", LIST.filter, () => ui.toggleFilters(), { expanded: open })}
      ${iconButton("select", selection.active ? LIST.endSelection : LIST.select, () => (selection.active ? selection.end() : selection.begin()), { pressed: selection.active })}
      ${open ? filters(ui) : nothing}
    </div>
  `;
}

/** @param {Ui} ui */
function filters(ui) {
  const { label, priority } = ui.pages.filter;
  const labels = [...new Set([...ui.reader.labels, ...(label ? [label] : [])])].sort((one, other) => one.localeCompare(other));
  const chosen = (/** @type {Event} */ { target }) => {
    const { name, value } = /** @type {HTMLSelectElement} */ (target);
    void ui.setFilter(/** @type {Partial<Filter>} */ ({ [name]: value }));
  };
  return html`
    <div class="filters" @change=${chosen}>
      <select name="label" data-part="label" aria-label=${LIST.label} .value=${label}>
        <option value="" ?selected=${!label}>${LIST.anyLabel}</option>
        ${labels.map((one) => html`<option value=${one} ?selected=${one === label}>${one}</option>`)}
      </select>
      <select name="priority" data-part="priority" aria-label=${LIST.priority} .value=${priority}>
        <option value="" ?selected=${!priority}>${LIST.anyPriority}</option>
        ${Object.entries(PRIORITIES).map(([value, name]) => html`<option value=${value} ?selected=${value === priority}>${name}</option>`)}
      </select>
      ${label || priority
        ? html`<button type="button" class="text-button" @click=${() => ui.setFilter({ label: "", priority: "" })}>${LIST.clearFilter}</button>`
        : nothing}
    </div>
  `;
}

/** Renders the actions for the selected tasks. @param {Ui} ui */
export function barView(ui) {
  const { selection, selected, view } = ui;
  if (!selection.active) return nothing;
  const none = selected.length === 0;
  const act = (/** @type {Icon} */ name, /** @type {string} */ text, /** @type {() => void} */ work) =>
    html`<button type="button" class="text-button" ?disabled=${none} @click=${work}>${icon(name)}<span>${text}</span></button>`;
  return html`
    <div class="selection" role="toolbar" aria-label=${LIST.selected(selected.length)}>
      <span role="status" translate="no">${LIST.selected(selected.length)}</span>
      <span class="spacer"></span>
      ${view === "deleted"
        ? act("restore", LIST.restore, () => ui.actions.restore(ui.takeSelected()))
        : html`
            ${view === "done" ? nothing : act("check", LIST.complete, () => ui.actions.tick(ui.takeSelected(), true))}
            ${view === "done" ? nothing : act("calendar", LIST.move, () => ui.startMove(selected))}
            ${act("remove", LIST.remove, () => ui.remove(ui.takeSelected()))}
          `}
      ${iconButton("close", LIST.endSelection, () => ui.selection.end())}
    </div>
  `;
}

// @ts-check
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { icon, iconButton } from "../../icons.js";
import { withKey } from "../../shortcuts.js";
import { LIST } from "../../texts.js";
import { counted, fullDay, LANGUAGE } from "../../words.js";
import { PRIORITIES } from "../fields.js";
/** @import {Icon} from "../../icons.js" */
/** @import {Command} from "../../shortcuts.js" */
/** @import {Filter, Sort} from "../types" */
/** @import {Ui} from "../ui.js" */

const MAX_COUNTED = 2000; // the server stops counting here

/** Renders the view's name and what changes its order and its tasks. @param {Ui} ui */
export function toolsView(ui) {
  const { view, pages, selection } = ui;
  return html`
    <div class="tools">
      <h2>${LIST.views[view]}</h2>
      ${view === "today" ? html`<span class="quiet" translate="no" lang=${LANGUAGE}>${fullDay(ui.today, ui.today)}</span>` : nothing}
      <span class="quiet total" translate="no">${pages.current && pages.total > 0 ? `${counted(pages.total)}${pages.total === MAX_COUNTED ? "+" : ""}` : ""}</span>
      ${sortView(ui)}
      ${iconButton("filter", LIST.filter, () => ui.toggleFilters(), { expanded: ui.filtersOpen })}
      ${iconButton("select", selection.active ? LIST.endSelection : LIST.select, () => (selection.active ? selection.end() : selection.begin()), { pressed: selection.active, command: "select" })}
      ${filtersView(ui)}
    </div>
  `;
}

/** @param {Ui} ui */
const sortView = (ui) => html`
  <label class="sort" title=${LIST.sort}>
    ${icon("sort")}<span aria-hidden="true">${LIST.sorts[ui.navigation.sort]}</span>
    ${selectView("sort", Object.entries(LIST.sorts), ui.navigation.sort, {
      label: LIST.sort,
      change: ({ target }) => ui.navigation.setSort(/** @type {Sort} */ (target.value)),
    })}
  </label>
`;

/** Renders the filters that are set, each with a button that removes it, and the inputs that set them. @param {Ui} ui */
function filtersView(ui) {
  const { label, priority } = ui.pages.filter;
  if (!ui.filtersOpen && !label && !priority) return nothing;
  return html`
    <div class="filters">
      ${ui.filtersOpen ? filterInputs(ui) : nothing}
      ${label ? filterChip(`#${label}`, () => ui.navigation.setFilter({ label: "" })) : nothing}
      ${priority ? filterChip(`${LIST.priority}: ${PRIORITIES[priority]}`, () => ui.navigation.setFilter({ priority: "" })) : nothing}
      ${label && priority ? html`<button type="button" class="text-button" @click=${() => ui.navigation.setFilter({ label: "", priority: "" })}>${LIST.clearFilters}</button>` : nothing}
    </div>
  `;
}

/** @param {string} text @param {() => void} remove */
const filterChip = (text, remove) => html`<span class="chip"><span dir="auto">${text}</span>${iconButton("close", LIST.clearFilter(text), remove)}</span>`;

/** @param {Ui} ui */
function filterInputs(ui) {
  const { label, priority } = ui.pages.filter;
  const labels = [...new Set([...ui.reader.labels, ...(label ? [label] : [])])].sort((one, other) => one.localeCompare(other));
  const change = (/** @type {{target: HTMLSelectElement}} */ { target }) =>
    void ui.navigation.setFilter(/** @type {Partial<Filter>} */ ({ [target.name]: target.value }));
  return [
    selectView("label", [["", LIST.anyLabel], ...labels.map((one) => /** @type {[string, string]} */ ([one, one]))], label, { label: LIST.label, change }),
    selectView("priority", [["", LIST.anyPriority], ...Object.entries(PRIORITIES)], priority, { label: LIST.priority, change }),
  ];
}

/** Renders the actions for the selected tasks. @param {Ui} ui */
export function barView(ui) {
  const { selection, view } = ui;
  const count = selection.tasks.length;
  if (!selection.active) return nothing;
  const act = (/** @type {Icon} */ name, /** @type {string} */ text, /** @type {() => void} */ work, /** @type {Command | undefined} */ command = undefined) =>
    html`<button type="button" class="text-button" title=${withKey(text, command)} ?disabled=${count === 0} @click=${work}>${icon(name)}<span>${text}</span></button>`;
  return html`
    <div class="selection" role="toolbar" aria-label=${LIST.selected(count)}>
      <span role="status" translate="no">${LIST.selected(count)}</span>
      <span class="spacer"></span>
      ${view === "deleted"
        ? act("restore", LIST.restore, () => ui.actions.restore(ui.selection.take()))
        : html`
            ${view === "done" ? nothing : act("check", LIST.complete, () => ui.actions.tick(ui.selection.take(), true), "complete")}
            ${view === "done" ? nothing : act("calendar", LIST.move, () => ui.moveDialog.open(selection.tasks), "date")}
            ${act("remove", LIST.remove, () => ui.remove(ui.selection.take()), "remove")}
          `}
      ${iconButton("close", LIST.endSelection, () => ui.selection.end())}
    </div>
  `;
}

/** @param {string} name @param {[value: string, text: string][]} options @param {string} chosen @param {{label?: string, change?: (event: {target: HTMLSelectElement}) => void}} [more] */
export const selectView = (name, options, chosen, { label, change } = {}) => html`
  <select name=${name} data-part=${name} aria-label=${label ?? nothing} .value=${chosen} @change=${change ?? nothing}>
    ${options.map(([value, text]) => html`<option value=${value} ?selected=${value === chosen}>${text}</option>`)}
  </select>
`;

// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { actionKey } from "./actions.js";
import { icon } from "./icons.js";
/** @import {Action, Item, Widget} from "./types" */
/** @import {Icon as IconName} from "./icons.js" */
/** @import {Ui} from "./ui.js" */

/** `row`: the texts beside a component, which may be a box's label. @typedef {{item: Item, ui: Ui, row: string[]}} Context */

/** ChatKit's names of those that are drawn here; others are left out: words stand beside them. @type {Map<string, IconName>} */
const ICONS = new Map([["reload", "repeat"]]);
const COLORS = new Set(["secondary", "success", "danger", "warning", "info", "discovery"]);

/** @param {Item} item @param {Ui} ui */
export function widgetView(item, ui) {
  const root = item.widget;
  if (!root) return nothing;
  const context = { item, ui, row: texts(root) };
  if (root.type === "ListView") return listView(root, context);
  return html`<div class="widget" role="group" aria-label="Card">${nodes(childrenOf(root), context)}</div>`;
}

/** @param {Widget} root @param {Context} context */
function listView(root, context) {
  const rows = childrenOf(root);
  const { item, ui } = context;
  const limit = typeof root.limit === "number" && !ui.expanded.has(item.id) ? root.limit : rows.length;
  const status = /** @type {{text?: string} | undefined} */ (root.status)?.text;
  const showMore = (/** @type {Event} */ { currentTarget }) => {
    const list = /** @type {HTMLElement} */ (currentTarget).closest("div");
    ui.expand(item);
    const next = list?.querySelectorAll("li")[limit]?.querySelector("input") ?? list;
    next?.focus({ preventScroll: true });
  };
  return html`
    <div class="widget" role="group" aria-label="Task list" tabindex="-1">
      ${status ? html`<p class="status">${status}</p>` : nothing}
      <ul>
        ${rows.slice(0, limit).map((row) => html`<li>${node(row, { ...context, row: texts(row) })}</li>`)}
      </ul>
      ${rows.length > limit
        ? html`<button type="button" class="text-button" @click=${showMore}>Show more</button>`
        : nothing}
    </div>
  `;
}

/** @param {Widget[]} widgets @param {Context} context */
const nodes = (widgets, context) => widgets.map((widget) => node(widget, context));

/** @param {Widget} widget @param {Context} context @returns {unknown} */
function node(widget, context) {
  switch (widget.type) {
    case "ListViewItem":
    case "Row":
      return flex(widget, "row", context);
    case "Col":
      return flex(widget, "col", context);
    case "Text":
      return html`<span class=${textClass(widget)} dir="auto">${text(widget.value)}</span>`;
    case "Caption":
      return html`<small class=${textClass(widget)} dir="auto">${text(widget.value)}</small>`;
    case "Badge":
      return html`<span class="badge ${name(widget.variant)} ${color(widget)}" dir="auto">${text(widget.label)}</span>`;
    case "Icon": {
      const drawn = ICONS.get(text(widget.name));
      return drawn ? html`<span class="symbol ${color(widget)}">${icon(drawn)}</span>` : nothing;
    }
    case "Spacer":
      return html`<span class="spacer"></span>`;
    case "Checkbox":
      return checkbox(widget, context);
    default: {
      const words = readable(widget);
      return words ? html`<span dir="auto">${words}</span>` : nothing;
    }
  }
}

/** @param {Widget} widget @param {"row" | "col"} direction @param {Context} context */
const flex = (widget, direction, context) =>
  html`<div class="${direction} align-${name(widget.align)} ${widget.wrap === "wrap" ? "wrap" : ""}">${nodes(childrenOf(widget), context)}</div>`;

/** @param {Widget} widget @param {Context} context */
function checkbox(widget, { item, ui, row }) {
  const action = /** @type {Action | undefined} */ (widget.onChangeAction);
  const runs = action !== undefined && ui.conversation.actions.running.has(actionKey(action, item.id));
  const checked = Boolean(widget.defaultChecked) !== runs; // while it runs, the box shows what was asked for
  const label = text(widget.label);
  // Not `disabled`, which would take the focus away from it.
  const locked = Boolean(widget.disabled) || runs || !action;
  return html`
    <label class="tick">
      <input
        type="checkbox"
        name=${text(widget.name)}
        aria-label=${label || row[0] || "Done"}
        .checked=${checked}
        aria-disabled=${locked}
        @click=${(/** @type {Event} */ event) => locked && event.preventDefault()}
        @change=${() => action && ui.act(action, item)}
      />
      ${!label || row.includes(label) ? nothing : html`<span class=${widget.defaultChecked ? "through" : ""} dir="auto">${label}</span>`}
    </label>
  `;
}

/** @param {Widget} widget @returns {Widget[]} */
export function childrenOf({ children }) {
  return Array.isArray(children) ? children : children ? [children] : [];
}

/** @param {Widget} widget @returns {string[]} */
const texts = (widget) => (widget.type === "Text" ? [text(widget.value)] : childrenOf(widget).flatMap(texts));

/** What a component without a drawing of its own says, so that nothing is lost. @param {Widget} widget @returns {string} */
function readable(widget) {
  const own = ["value", "label", "alt", "title"].map((property) => text(widget[property]));
  return [...own, ...childrenOf(widget).map(readable)].filter(Boolean).join(" ");
}

/** @param {Widget} widget */
const textClass = (widget) =>
  [color(widget), `weight-${name(widget.weight)}`, `size-${name(widget.size)}`, widget.lineThrough ? "through" : ""].join(" ");

/** @param {Widget} widget */
const color = (widget) => (COLORS.has(text(widget.color)) ? `color-${widget.color}` : "");

/** A word that may be part of a class. @param {unknown} value */
const name = (value) => (typeof value === "string" && /^[a-z0-9]+$/.test(value) ? value : "normal");

/** @param {unknown} value */
const text = (value) => (typeof value === "string" || typeof value === "number" ? String(value) : "");

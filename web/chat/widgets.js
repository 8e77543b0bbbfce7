// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { actionKey } from "./actions.js";
import { chatKitIcon } from "../icons.js";
import { TEXTS } from "../texts.js";
import { directionOf, plain } from "./plain.js";
import { between, clockWords, dayWords, fullDay, removeBidiControls } from "../words.js";
/** @import {Action, CardAction, Item, Widget} from "./types" */
/** @import {Ui} from "./ui.js" */

/**
 * `row`: the texts next to a component, such as a checkbox's label. `about`: the first checkbox there. `open`: shows the task,
 * as a click on its title. `asks`: checkboxes belong to an approval card and do nothing by themselves.
 * @typedef {{item: Item, ui: Ui, row: string[], about: string, open?: Action | undefined, asks?: boolean}} Context
 */

const DATED = /^(due|next)-(\d{4}-\d\d-\d\d)(?:T((?:[01]\d|2[0-3]):[0-5]\d))?$/; // keys, as in backend/cards
const OPEN = "open_task";
const COLORS = new Set(["secondary", "success", "danger", "warning"]);

/** @param {Item} item @param {Ui} ui */
export function widgetView(item, ui) {
  const root = item.widget;
  if (!root) return nothing;
  const context = { item, ui, row: texts(root), about: boxIn(root), open: openingIn(root) };
  if (root.type === "ListView") return listView(root, context);
  if (root.type === "Basic") return lineView(root, context);
  if (root.confirm || root.cancel) return askingView(root, context);
  return html`<div class="widget card" translate="no" role="group" aria-label=${TEXTS.card.title}>${nodes(childrenOf(root), context)}</div>`;
}

/** Renders what an answer has changed, as a line below it. @param {Widget} root @param {Context} context */
const lineView = (root, context) => html`
  <div class="widget line" translate="no" role="group" aria-label=${TEXTS.card.changes} tabindex="-1">
    ${nodes(childrenOf(root), { ...context, about: context.row.join(" ") })}
  </div>
`;

/** Renders an approval card; a decision continues the run. @param {Widget} root @param {Context} context */
function askingView(root, context) {
  const { item, ui } = context;
  const [about] = context.row;
  const answer = (/** @type {CardAction | undefined} */ button, /** @type {string} */ kind) => {
    if (!button) return nothing;
    const click = (/** @type {Event} */ { currentTarget }) => {
      const form = /** @type {HTMLElement} */ (currentTarget).closest("form");
      void ui.decide({ ...button.action, payload: { ...(form && formValues(form)), ...button.action.payload } }, item);
    };
    const label = about?.startsWith(button.label) ? button.label : `${button.label}: ${about}`;
    return html`<button type="button" class="button ${kind}" aria-label=${removeBidiControls(label)} aria-disabled=${!ui.ready || nothing} @click=${click}>${button.label}</button>`;
  };
  return html`
    <div class="widget card" translate="no" role="group" aria-label=${removeBidiControls(about ?? TEXTS.card.title)}>
      <form class="col" autocomplete="off" @submit=${(/** @type {Event} */ event) => event.preventDefault()}>
        ${nodes(childrenOf(root), { ...context, asks: true })}
        <div class="row wrap">
          ${answer(/** @type {CardAction | undefined} */ (root.confirm), deletes(root) ? "danger" : "primary")}
          ${answer(/** @type {CardAction | undefined} */ (root.cancel), "")}
        </div>
      </form>
    </div>
  `;
}

/** Whether the card asks to delete tasks. @param {Widget} root */
const deletes = ({ confirm }) => Boolean(/** @type {CardAction | undefined} */ (confirm)?.action.payload?.deletes);

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
    <div class="widget" translate="no" role="group" aria-label=${TEXTS.card.list} tabindex="-1">
      ${status ? html`<p class="status">${status}</p>` : nothing}
      <ul>
        ${repeat(
          rows.slice(0, limit),
          keyOf,
          (row) => html`<li>${node(row, { ...context, row: texts(row), about: boxIn(row), open: openingIn(row) })}</li>`,
        )}
      </ul>
      ${rows.length > limit
        ? html`<button type="button" class="text-button" @click=${showMore}>${TEXTS.card.more}</button>`
        : nothing}
    </div>
  `;
}

/** Returns the values of a card's fields by name. @param {HTMLFormElement} form */
const formValues = (form) => Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]));

/** @param {unknown} field @param {Context} context */
const fieldId = (field, { item }) => `${item.id}/${text(field)}`;

/** @param {Widget[]} widgets @param {Context} context */
const nodes = (widgets, context) => repeat(widgets, keyOf, (widget) => node(widget, context));

/** Returns keys that keep form fields over changes around them. @param {Widget} widget @param {number} index */
const keyOf = ({ key }, index) => key ?? index;

/** @param {Widget} widget @param {Context} context @returns {unknown} */
function node(widget, context) {
  switch (widget.type) {
    case "ListViewItem":
    case "Row":
      return flex(widget, "row", context);
    case "Col":
      return flex(widget, "col", context);
    case "Text":
      return html`<span class=${textClass(widget)} dir=${directionOf(text(widget.value))}>${plain(text(widget.value))}</span>`;
    case "Caption":
      return html`<small dir="auto">${plain(labelOf(widget))}</small>`;
    case "Badge":
      return html`<span class="badge ${name(widget.variant)} ${color(widget)}" dir="auto">${labelOf(widget)}</span>`;
    case "Icon": {
      const drawn = chatKitIcon(text(widget.name));
      return drawn ? html`<span class="symbol ${color(widget)}">${drawn}</span>` : nothing;
    }
    case "Spacer":
      return html`<span class="spacer"></span>`;
    case "Checkbox":
      return checkbox(widget, context);
    case "Button":
      return button(widget, context);
    case "Label":
      return html`<label class="field-label" for=${fieldId(widget.fieldName, context)} dir="auto">${text(widget.value)}</label>`;
    case "Textarea":
      return textarea(widget, context);
    default:
      return nothing;
  }
}

/** @param {Widget} widget @param {"row" | "col"} direction @param {Context} context */
const flex = (widget, direction, context) =>
  html`<div class="${direction} align-${name(widget.align)} ${widget.wrap === "wrap" ? "wrap" : ""}">${nodes(childrenOf(widget), context)}</div>`;

/** @param {Widget} widget @param {Context} context */
function textarea(widget, context) {
  const id = fieldId(widget.name, context);
  const { ui } = context;
  return html`<textarea
    id=${id}
    name=${text(widget.name)}
    rows=${Number(widget.rows) || 3}
    dir="auto"
    .defaultValue=${ui.drafts.read("reason", id) ?? ""}
    @input=${(/** @type {{target: HTMLTextAreaElement}} */ { target }) => ui.drafts.write("reason", id, target.value)}
  ></textarea>`;
}

/** @param {Widget} widget @param {Context} context */
function checkbox(widget, context) {
  const { item, ui, row, open } = context;
  const action = /** @type {Action | undefined} */ (widget.onChangeAction);
  const runs = isRunning(action, context);
  const checked = Boolean(widget.defaultChecked) !== runs; // while it runs, the checkbox shows the new state
  const label = text(widget.label);
  // Not `disabled`, which would lose the focus.
  const locked = Boolean(widget.disabled) || runs || !(action || context.asks);
  const box = html`<input
    type="checkbox"
    name=${text(widget.name)}
    aria-label=${removeBidiControls(label || row[0] || TEXTS.card.done)}
    .checked=${checked}
    aria-disabled=${locked}
    @click=${(/** @type {Event} */ event) => locked && event.preventDefault()}
    @change=${() => action && ui.act(action, item)}
  />`;
  const title = !label || row.includes(label) ? nothing : html`<span class=${widget.defaultChecked ? "through" : ""} dir="auto">${label}</span>`;
  if (!open) return html`<label class="tick">${box}${title}</label>`;
  return html`
    <div class="tick">
      ${box}<button type="button" class="opens" title=${TEXTS.card.open} @click=${() => ui.act(open, item)}>${title}</button>
    </div>
  `;
}

/** @param {Widget} widget @param {Context} context */
function button(widget, context) {
  const action = /** @type {Action | undefined} */ (widget.onClickAction);
  if (action?.type === OPEN) return nothing; // its title has that action
  const label = text(widget.label);
  return html`
    <button
      type="button"
      class="text-button"
      aria-label=${context.about ? removeBidiControls(`${label}: ${context.about}`) : nothing}
      aria-disabled=${isRunning(action, context) || nothing}
      @click=${() => action && act(action, context)}
    >
      ${label}
    </button>
  `;
}

/** Runs an action unless it runs already. @param {Action} action @param {Context} context */
function act(action, context) {
  if (!isRunning(action, context)) void context.ui.act(action, context.item);
}

/** @param {Action | undefined} action @param {Context} context */
const isRunning = (action, { item, ui }) =>
  action !== undefined && ui.conversation.actions.running.has(actionKey(action, item.id));

/** @param {Widget} widget @returns {Widget[]} */
export function childrenOf({ children }) {
  return Array.isArray(children) ? children : children ? [children] : [];
}

/** Returns the text of a badge or caption; the date in its key is written in the user's language. @param {Widget} widget */
export function labelOf({ key, label, value }) {
  const [, kind, day, time] = DATED.exec(key ?? "") ?? [];
  if (!Date.parse(day)) return text(label ?? value);
  const today = new Date().toLocaleDateString("sv"); // ISO date in the browser's zone
  const words = Math.abs(between(today, day)) <= 1 ? dayWords(day, today) : fullDay(day, today);
  const date = [words, time && clockWords(time)].filter(Boolean).join(" ");
  return kind === "next" ? TEXTS.card.next(date) : date;
}

/** @param {Widget} widget @returns {string[]} */
const texts = (widget) => (widget.type === "Text" ? [text(widget.value)] : childrenOf(widget).flatMap(texts));

/** Returns the label of the first checkbox. @param {Widget} widget @returns {string} */
function boxIn(widget) {
  if (widget.type === "Checkbox") return text(widget.label);
  return childrenOf(widget).map(boxIn).find(Boolean) ?? "";
}

/** @param {Widget} widget @returns {Action | undefined} */
function openingIn(widget) {
  const action = /** @type {Action | undefined} */ (widget.onClickAction);
  return action?.type === OPEN ? action : childrenOf(widget).map(openingIn).find(Boolean);
}

/** @param {Widget} widget */
const textClass = (widget) => [color(widget), `weight-${name(widget.weight)}`, `size-${name(widget.size)}`].join(" ");

/** @param {Widget} widget */
const color = (widget) => (COLORS.has(text(widget.color)) ? `color-${widget.color}` : "");

/** Returns a word that is safe in a class name. @param {unknown} value */
const name = (value) => (typeof value === "string" && /^[a-z0-9]+$/.test(value) ? value : "normal");

/** @param {unknown} value */
const text = (value) => (typeof value === "string" || typeof value === "number" ? String(value) : "");

// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
/** @import {Action, Widget} from "./types" */

/** What is written in its fields is sent with its action. @param {Widget} form @param {unknown} children @param {(action: Action) => void} send */
export function formView({ onSubmitAction, direction }, children, send) {
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const action = /** @type {Action | undefined} */ (onSubmitAction);
    if (action) send({ ...action, payload: { ...written(/** @type {HTMLFormElement} */ (event.currentTarget)), ...action.payload } });
  };
  return html`<form class=${direction === "row" ? "row" : "col"} autocomplete="off" @submit=${submit}>${children}</form>`;
}

/** What is written in the fields of a form, by their names. @param {HTMLFormElement} form */
export const written = (form) =>
  Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]));

/** @param {Widget} label @param {string} scope what begins the ids of a form's fields */
export const labelView = ({ value, fieldName }, scope) =>
  html`<label class="field-label" for=${scope + text(fieldName)} dir="auto">${text(value)}</label>`;

/** @param {Widget} field @param {string} scope */
export const inputView = (field, scope) => html`
  <input
    type=${text(field.inputType) || "text"}
    id=${scope + text(field.name)}
    name=${text(field.name)}
    value=${text(field.defaultValue)}
    placeholder=${text(field.placeholder) || nothing}
    pattern=${text(field.pattern) || nothing}
    dir="auto"
    ?required=${Boolean(field.required)}
    ?disabled=${Boolean(field.disabled)}
  />
`;

/** @param {Widget} field @param {string} scope */
export const areaView = (field, scope) => html`
  <textarea
    id=${scope + text(field.name)}
    name=${text(field.name)}
    rows=${typeof field.rows === "number" ? field.rows : 3}
    placeholder=${text(field.placeholder) || nothing}
    dir="auto"
    .defaultValue=${text(field.defaultValue)}
    ?required=${Boolean(field.required)}
    ?disabled=${Boolean(field.disabled)}
  ></textarea>
`;

/** A day, which ChatKit has as midnight. @param {Widget} field @param {string} scope */
export const dateView = (field, scope) => html`
  <input
    type="date"
    id=${scope + text(field.name)}
    name=${text(field.name)}
    value=${day(field.defaultValue)}
    min=${day(field.min) || nothing}
    max=${day(field.max) || nothing}
    ?required=${!field.clearable}
    ?disabled=${Boolean(field.disabled)}
  />
`;

/** @param {Widget} field @param {string} scope */
export function selectView(field, scope) {
  const options = /** @type {{value: string, label: string}[]} */ (Array.isArray(field.options) ? field.options : []);
  return html`
    <select id=${scope + text(field.name)} name=${text(field.name)} ?disabled=${Boolean(field.disabled)}>
      ${options.map(({ value, label }) => html`<option value=${value} ?selected=${value === field.defaultValue}>${label}</option>`)}
    </select>
  `;
}

/** @param {unknown} moment */
const day = (moment) => text(moment).slice(0, 10);

/** @param {unknown} value */
const text = (value) => (typeof value === "string" ? value : "");

// @ts-check
import { newKey } from "../http.js";
import { html } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { ALERTS } from "./texts.js";
/** @import {NotificationActions} from "./dialog.js" */

/** An input of a channel's target; `suggest` returns what is in it at first. @typedef {{name: string, label: string, type: string, suggest?: () => string, optional?: boolean}} Input */

/** The inputs of each kind of channel that is no device, by the names that the server reads. @type {Record<string, Input[]>} */
export const FORMS = {
  ntfy: [
    { name: "server", label: "Server", type: "url", suggest: () => "https://ntfy.sh" },
    { name: "topic", label: "Topic: who knows it can read along, so it is hard to guess", type: "text", suggest: () => `todo-${newKey().slice(0, 16)}` },
    { name: "token", label: "Access token, if that server needs one", type: "password", optional: true },
  ],
  webhook: [
    { name: "url", label: "Address", type: "url" },
    { name: "secret", label: "Secret that signs each message: copy it to the receiver", type: "text", suggest: newKey },
  ],
  email: [{ name: "address", label: "E-mail address", type: "email" }],
};

/** A form that is open, and what is in it at first. @typedef {{kind: string, values: Record<string, string>}} Adding */

/** @param {string} kind @returns {Adding} */
export const openForm = (kind) => ({ kind, values: Object.fromEntries(FORMS[kind].map(({ name, suggest }) => [name, suggest?.() ?? ""])) });

/** @param {Adding} adding @param {NotificationActions} actions */
export const formView = ({ kind, values }, actions) => html`
  <form class="new" @submit=${actions.add}>
    ${repeat(FORMS[kind], ({ name }) => `${kind}/${name}`, (input) => inputView(input, values[input.name]))}
    <p class="quiet">${ALERTS.others.leaves}</p>
    <button type="submit" class="button primary">${ALERTS.others.add}</button>
  </form>
`;

/** @param {Input} input @param {string} value */
const inputView = ({ name, label, type, optional }, value) => html`
  <label for="alerts-${name}">${label}</label>
  <input id="alerts-${name}" name=${name} type=${type} value=${value} ?required=${!optional} autocomplete="off" spellcheck="false" />
`;

// @ts-check
import { sentence } from "../chat/protocol.js";
import { iconButton } from "../icons.js";
import { TEXTS } from "../texts.js";
import { html, nothing, render } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { IN_PAGE } from "./page-texts.js";
/** @import {Alert} from "./types" */

const SNOOZE_MINUTES = 10;

/** `open` shows what an alert is about; `snoozed`: a task was snoozed. @typedef {{send: typeof fetch, open: (address: URL) => void, snoozed: () => void}} Page */

/** What is shown, by its key; `problem`: why an action was not done. @type {Map<string, {alert: Alert, problem?: string}>} */
const shown = new Map();
/** @type {HTMLElement | null} */
let container = null;

/** Shows alerts in the page, where the browser shows no notifications. @param {Alert[]} alerts @param {Page} page */
export function showInPage(alerts, page) {
  const added = alerts.filter(({ key }) => !shown.has(key));
  if (added.length === 0) return;
  for (const alert of added) shown.set(alert.key, { alert });
  if (!container) {
    container = Object.assign(document.createElement("section"), { className: "in-page-alerts", ariaLabel: IN_PAGE.title });
    document.body.append(container);
  }
  draw(page);
  for (const { key } of added) void post(page, `alerts/${encodeURIComponent(key)}/shown`, {});
}

/** Removes the alerts of a user who has left. */
export function removeFromPage() {
  shown.clear();
  container?.remove();
  container = null;
}

/** @param {Page} page @param {string} path @param {object} body */
const post = ({ send }, path, body) =>
  send(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }).catch(() => null);

/** @param {Page} page */
function draw(page) {
  if (!container) return;
  if (shown.size === 0) return removeFromPage();
  render(html`<ul aria-live="polite">${repeat(shown.values(), ({ alert }) => alert.key, (one) => row(one, page))}</ul>`, container);
}

/** @param {{alert: Alert, problem?: string}} shown @param {Page} page */
function row({ alert, problem }, page) {
  const { key, title, body, url, actions } = alert;
  const dismiss = () => {
    shown.delete(key);
    draw(page);
  };
  const open = () => {
    dismiss();
    page.open(new URL(url, document.baseURI));
  };
  const act = (/** @type {string} */ action, /** @type {object} */ values) => async () => {
    const response = await post(page, `alerts/${encodeURIComponent(key)}/${action}`, values);
    if (response?.ok && action === "snooze") page.snoozed();
    if (!shown.has(key)) return; // it was dismissed, or the user has left meanwhile
    const result = response?.ok ? await response.json() : null;
    if (result?.done) return dismiss();
    const problem = result?.message ?? (response ? await sentence(response) : TEXTS.unreachable);
    shown.set(key, { alert: { ...alert, actions: actions && !result }, problem });
    draw(page);
  };
  return html`
    <li>
      <div><strong dir="auto" translate="no">${title}</strong><br /><span class="body" dir="auto">${body}</span></div>
      ${iconButton("close", `${IN_PAGE.dismiss}: ${title}`, dismiss)}
      ${problem ? html`<p class="problem" role="alert" dir="auto">${problem}</p>` : nothing}
      <div class="buttons">
        ${actions ? [button(IN_PAGE.done, title, act("done", {})), button(IN_PAGE.snooze, title, act("snooze", { minutes: SNOOZE_MINUTES }))] : nothing}
        ${button(IN_PAGE.open, title, open)}
      </div>
    </li>
  `;
}

/** @param {string} text @param {string} title @param {() => void} click */
const button = (text, title, click) => html`<button type="button" class="button" aria-label="${text}: ${title}" @click=${click}>${text}</button>`;

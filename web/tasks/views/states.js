// @ts-check
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { repeat } from "../../vendor/lit-html/directives/repeat.js";
import { link } from "../../address.js";
import { icon, iconButton } from "../../icons.js";
import { removeBidiControls } from "../../words.js";
import { withKey } from "../../shortcuts.js";
import { LIST, TEXTS } from "../../texts.js";
/** @import {Icon} from "../../icons.js" */
/** @import {Notice} from "../actions.js" */
/** @import {PendingChanges, StoredChange} from "../data/pending.js" */
/** @import {View} from "../types" */
/** @import {Ui} from "../ui.js" */

const ICONS = /** @type {Record<View, Icon>} */ ({ today: "light", upcoming: "calendar", all: "check", done: "check", deleted: "remove" });

/** @param {Ui} ui */
export function emptyView({ view, pages }) {
  const [title, help] = pages.filtered ? LIST.emptyFound : LIST.empty[view];
  return html`
    <div class="empty">
      ${icon(pages.filtered ? "search" : ICONS[view])}
      <p class="greeting">${title}</p>
      <p class="quiet">${help}</p>
    </div>
  `;
}

/** Says why there is nothing to show. @param {Ui} ui */
export const missingView = (ui) => html`
  <div class="empty" role="status">
    ${icon("search")}
    <p class="greeting">${ui.navigation.missing}</p>
    <a class="button" href=${link({ view: "today" })}>${LIST.goToday}</a>
  </div>
`;

/** Renders placeholders for rows, or that they cannot be loaded now. @param {Ui} ui */
export const loadingView = ({ reader }) =>
  reader.poller.lost
    ? html`<div class="empty">${icon("info")}<p class="quiet">${LIST.shownLater}</p></div>`
    : html`
        <div class="coming-rows">
          <p class="visually-hidden" role="status">${LIST.loading}</p>
          ${[1, 2, 3, 4].map(() => html`<div><span></span><span></span></div>`)}
        </div>
      `;

/** @param {Ui} ui */
export const problemView = (ui) => html`
  <div class="empty" role="alert">
    ${icon("warning")}
    <p class="greeting">${LIST.problem}</p>
    <p class="quiet" dir="auto">${ui.reader.problem}</p>
    <button type="button" class="button" @click=${() => ui.reader.refresh()}>${TEXTS.tryAgain}</button>
  </div>
`;

/** @param {Ui} ui */
export const connectionView = ({ reader: { poller: live, pending } }) =>
  live.lost
    ? html`<p class="lost" role="status">
        <span class="spinner"></span><span translate="no">${LIST.lost} ${pending.open > 0 ? LIST.unsaved(pending.open) : nothing}</span>
      </p>`
    : nothing;

/** Renders changes that are not sent without asking. @param {Ui} ui */
export function oldChangesView({ pending }) {
  const earlier = pending.old.filter((change) => change.earlier);
  const old = pending.old.filter((change) => !change.earlier);
  return html`
    ${heldChangesView(earlier, pending, { title: LIST.earlierChanges, send: LIST.send, describe: describeRequests })}
    ${heldChangesView(old, pending, { title: LIST.oldChanges, send: LIST.sendAgain, describe: ({ text, summary }) => text?.trim() ?? summary })}
  `;
}

/** Describes what a change does by its requests alone, because its other texts may be made up. @param {StoredChange} change */
const describeRequests = ({ requests }) => requests.map(LIST.describeRequest).join(" ");

/** @param {StoredChange[]} changes @param {PendingChanges} pending @param {{title: string, send: string, describe: (change: StoredChange) => string}} texts */
function heldChangesView(changes, pending, { title, send, describe }) {
  if (changes.length === 0) return nothing;
  return html`<ul class="aside" aria-label=${title}>
    ${changes.map((change) => {
      const text = describe(change);
      return html`<li>
        <p><span class="quiet">${LIST.notSaved}:</span> <span dir="auto" translate="no">${text}</span></p>
        <button type="button" class="text-button" aria-label="${send}: ${removeBidiControls(text)}" @click=${() => pending.sendAgain([change])}>${send}</button>
        <button type="button" class="text-button" aria-label="${LIST.discard}: ${removeBidiControls(text)}" @click=${() => pending.discard(change)}>${LIST.discard}</button>
      </li>`;
    })}
  </ul>`;
}

/** Renders the notice of the last change and its undo button. @param {Ui} ui */
export function noticeView(ui) {
  const { actions: acts } = ui;
  const notices = acts.notice ? [acts.notice] : [];
  return repeat(notices, (notice) => notice, (notice) => barOf(notice, ui)); // the browser may translate the text of each
}

/** @param {string} problem why a task does not remind @param {Ui} ui */
const reminderView = (problem, ui) => html`
  <div class="reminder">
    <p>${problem}</p>
    <button type="button" class="text-button" @click=${() => ui.openNotifications()}>${LIST.reminders.open}</button>
  </div>
`;

/** @param {Notice} notice @param {Ui} ui */
function barOf({ text, back, danger, show = null, reminder }, ui) {
  const { actions: acts } = ui;
  return html`
    <div class="notice-bar ${danger ? "danger" : ""}" role=${danger ? "alert" : nothing}>
      ${danger ? icon("warning") : nothing}
      <p dir="auto">${removeBidiControls(text)}</p>
      ${show !== null && !ui.task(show) ? html`<button type="button" class="text-button" @click=${() => ui.navigation.show(show)}>${LIST.showIt}</button>` : nothing}
      ${back ? html`<button type="button" class="text-button" data-part="undo" title=${back.command ? withKey(back.text, back.command) : nothing} @click=${() => acts.undo()}>${back.text}</button>` : nothing}
      ${iconButton("close", TEXTS.dismiss, () => acts.dismiss())}
      ${reminder ? reminderView(reminder, ui) : nothing}
    </div>
  `;
}

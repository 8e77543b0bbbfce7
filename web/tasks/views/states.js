// @ts-check
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { repeat } from "../../vendor/lit-html/directives/repeat.js";
import { icon, iconButton } from "../../icons.js";
import { LIST, TEXTS } from "../../texts.js";
/** @import {Icon} from "../../icons.js" */
/** @import {Notice} from "../actions.js" */
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

/** Placeholders for rows. */
export const loadingView = () => html`
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

/** Renders the notice of the last change and its undo button. @param {Ui} ui */
export function noticeView(ui) {
  const { actions: acts } = ui;
  const notices = acts.notice ? [acts.notice] : [];
  return repeat(notices, (notice) => notice, (notice) => barOf(notice, ui)); // the browser may translate the text of each
}

/** @param {Notice} notice @param {Ui} ui */
function barOf({ text, back, danger, show = null }, ui) {
  const { actions: acts } = ui;
  return html`
    <div class="notice-bar ${danger ? "danger" : ""}" role=${danger ? "alert" : nothing}>
      ${danger ? icon("warning") : nothing}
      <p dir="auto">${text}</p>
      ${show !== null && !ui.task(show) ? html`<button type="button" class="text-button" @click=${() => ui.show(show)}>${LIST.showIt}</button>` : nothing}
      ${back ? html`<button type="button" class="text-button" data-part="undo" @click=${() => acts.undo()}>${back.text}</button>` : nothing}
      ${iconButton("close", TEXTS.dismiss, () => acts.dismiss())}
    </div>
  `;
}

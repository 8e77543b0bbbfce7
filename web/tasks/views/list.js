// @ts-check
import { html, nothing, svg } from "../../vendor/lit-html/lit-html.js";
import { repeat } from "../../vendor/lit-html/directives/repeat.js";
import { iconButton } from "../../icons.js";
import { LIST } from "../../texts.js";
import { counted, dayWords, fullDay, LANGUAGE } from "../../words.js";
import { addingView } from "./adding.js";
import { rowView } from "./row.js";
import { connectionView, emptyView, loadingView, missingView, noticeView, oldChangesView, problemView } from "./states.js";
import { barView, toolsView } from "./tools.js";
/** @import {DoneOnDay, Section, Task} from "../types" */
/** @import {Ui} from "../ui.js" */
/** @import {Drawn} from "../window.js" */

const HEIGHT = 40; // units of the chart
const STEP = 10; // units of the chart for a day; the bar takes 7 of them

/** @param {Ui} ui */
export const listView = (ui) => html`
  ${toolsView(ui)}
  ${ui.view === "deleted" || ui.view === "done" ? nothing : addingView(ui)}
  ${connectionView(ui)} ${oldChangesView(ui)}
  <div class="rows" tabindex="-1" aria-busy=${!ui.pages.current && !ui.navigation.missing} @scroll=${ui.scrolled}>${rows(ui)}</div>
  <div class="below">${noticeView(ui)} ${barView(ui)}</div>
  ${ui.controls ? [ui.controls.moveView(ui), ui.controls.menuView(ui), sheetView(ui)] : nothing}
`;

/** Renders the edited task on a small screen. @param {Ui} ui */
const sheetView = (ui) => html`
  <dialog
    class="task-sheet"
    aria-label=${LIST.editing}
    tabindex="-1"
    @cancel=${(/** @type {Event} */ event) => {
      event.preventDefault();
      void ui.editor.end(false);
    }}
    @click=${(/** @type {MouseEvent} */ { target, currentTarget }) => target === currentTarget && ui.editor.end(true)}
  >
    ${ui.editor.sheet ? ui.controls?.editingView(ui.editor.sheet, ui) : nothing}
  </dialog>
`;

/** @param {Ui} ui */
function rows(ui) {
  const { window, sections, pages } = ui;
  if (ui.navigation.missing) return missingView(ui);
  const isEmpty = sections.every(({ tasks }) => tasks.length === 0);
  if (ui.reader.problem && isEmpty) return problemView(ui);
  if (!pages.current && pages.tasks.length === 0 && isEmpty && !(pages.earlier && ui.reader.poller.lost)) return loadingView(ui);
  const chart = ui.view === "done" && pages.days.length > 0 && !pages.filtered ? chartView(pages.days, ui.today) : nothing;
  if (pages.tasks.length === 0 && isEmpty && ui.view !== "upcoming") return [chart, emptyView(ui)];
  return html`
    ${chart}
    <div class="space" .style=${`height: ${window.above}px`}></div>
    ${repeat(
      window.drawn,
      ({ section }) => `${ui.view} ${section.key}`,
      (drawn) => sectionView(drawn, ui),
    )}
    <div class="space" .style=${`height: ${window.below}px`}></div>
  `;
}

/** @param {Drawn} drawn @param {Ui} ui */
function sectionView({ section, first, end, above, below }, ui) {
  const { key, title, day, tasks } = section;
  const rowOf = (/** @type {Task | null} */ task, /** @type {number} */ index) =>
    task ? rowView(task, ui, { place: first + index + 1, of: tasks.length, day }) : missingRow(ui.window.row);
  return html`
    <section data-day=${day ?? nothing} aria-labelledby=${title ? `tasks-${key}` : nothing} aria-label=${title ? nothing : LIST.views[ui.view]}>
      ${title ? headingView(section, ui) : nothing}
      ${tasks.length === 0
        ? html`<p class="nothing">${LIST.nothingOn}</p>`
        : html`
            <ul .style=${`padding: ${above}px 0 ${below}px`}>
              ${repeat(
                tasks.slice(first, end),
                (task, index) => (task ? ui.pending.firstId(task.id) : `row ${first + index}`), // the row of a new task stays the same when it gets its number
                rowOf,
              )}
            </ul>
          `}
    </section>
  `;
}

/** Renders a row whose task is not loaded. @param {number} height */
const missingRow = (height) => html`<li class="task missing" aria-hidden="true" .style=${`height: ${height}px`}><span></span><span></span></li>`;

/** @param {Section} section @param {Ui} ui */
function headingView({ key, title, date, day, tasks, tone }, ui) {
  const dated = /^\d|^today$/.test(key); // not one of the fixed headings
  return html`
    <div class="head ${tone ?? ""}">
      <h3 id="tasks-${key}">
        <span lang=${dated ? LANGUAGE : nothing}>${title}</span> ${date ? html`<span class="date" translate="no" lang=${LANGUAGE}>${date}</span>` : nothing}
        ${tasks.length > 0 ? html`<span class="count" translate="no">${counted(tasks.length)}</span>` : nothing}
      </h3>
      ${key === "overdue" ? moveOverdueView(tasks, ui) : nothing}
      ${day ? iconButton("plus", LIST.addOn(dayWords(day, ui.today)), () => ui.addOn(day)) : nothing}
    </div>
  `;
}

/** Renders the button that moves the overdue tasks to today: under a filter those that it shows, once all are loaded. @param {(Task | null)[]} tasks @param {Ui} ui */
function moveOverdueView(tasks, ui) {
  const loaded = tasks.filter((task) => task !== null);
  if (ui.pages.filtered && loaded.length < tasks.length) return nothing;
  const move = () => (ui.pages.filtered ? ui.actions.move(loaded, { day: ui.today, time: null }) : ui.actions.moveOverdue(tasks));
  return html`<button type="button" class="text-button" @click=${move}>${LIST.moveOverdue}</button>`;
}

/** Renders how many tasks were completed on each of the last days. @param {readonly DoneOnDay[]} days @param {string} today */
function chartView(days, today) {
  const most = Math.max(1, ...days.map(({ done }) => done));
  const sum = days.reduce((all, { done }) => all + done, 0);
  const best = days.find(({ done }) => done === most);
  const text = LIST.chart(counted(sum), best ? fullDay(best.day, today) : "", counted(most), counted(days.at(-1)?.done ?? 0));
  return html`
    <figure class="chart">
      <figcaption><strong>${counted(sum)}</strong> ${LIST.chartTitle}</figcaption>
      <svg viewBox="0 0 ${days.length * STEP - 3} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label=${text}>
        ${days.map(({ day, done }, at) => {
          const high = done ? Math.max(4, (done / most) * HEIGHT) : 2;
          return svg`<rect class=${done ? "some" : ""} x=${at * STEP} y=${HEIGHT - high} width="7" height=${high} rx="2"><title>${fullDay(day, today)}: ${counted(done)}</title></rect>`;
        })}
      </svg>
    </figure>
  `;
}

// @ts-check
import { html, nothing, svg } from "../../vendor/lit-html/lit-html.js";
import { repeat } from "../../vendor/lit-html/directives/repeat.js";
import { iconButton } from "../../icons.js";
import { LIST } from "../../texts.js";
import { counted, dayWords, fullDay, LANGUAGE } from "../../words.js";
import { addingView } from "./adding.js";
import { moveView } from "./move.js";
import { rowView } from "./row.js";
import { connectionView, emptyView, loadingView, noticeView, problemView } from "./states.js";
import { barView, toolsView, viewsView } from "./tools.js";
/** @import {DoneOnDay} from "../types" */
/** @import {Ui} from "../ui.js" */
/** @import {Drawn} from "../window.js" */

const HEIGHT = 40; // units of the chart
const STEP = 10; // units of the chart for a day; the bar takes 7 of them

/** @param {Ui} ui */
export const listView = (ui) => html`
  ${viewsView(ui)}
  ${ui.view === "deleted" || ui.view === "done" ? nothing : addingView(ui)}
  ${toolsView(ui)} ${connectionView(ui)}
  <div class="rows" tabindex="-1" aria-busy=${!ui.pages.current} @scroll=${ui.scrolled}>${rows(ui)}</div>
  <div class="below">${noticeView(ui)} ${barView(ui)}</div>
  ${moveView(ui)}
`;

/** @param {Ui} ui */
function rows(ui) {
  const { window, sections, pages } = ui;
  if (ui.reader.problem && sections.length === 0) return problemView(ui);
  if (!pages.current && pages.tasks.length === 0) return loadingView();
  const chart = ui.view === "done" && pages.days.length > 0 && !pages.filtered ? chartView(pages.days, ui.today) : nothing;
  if (pages.tasks.length === 0 && ui.view !== "upcoming") return [chart, emptyView(ui)];
  return html`
    ${chart}
    <div class="space" .style=${`height: ${window.above}px`}></div>
    ${repeat(
      window.drawn,
      ({ section }) => `${ui.view} ${section.key}`,
      (drawn) => sectionView(drawn, ui),
    )}
    <div class="space" .style=${`height: ${window.below}px`}></div>
    ${pages.hasMore ? html`<p class="quiet more">${LIST.loading}</p>` : nothing}
  `;
}

/** @param {Drawn} drawn @param {Ui} ui */
function sectionView({ section, first, end, above, below }, ui) {
  const { key, title, date, day, tasks, tone } = section;
  const dated = /^\d|^today$/.test(key); // not one of the fixed headings
  const words = day ? dayWords(day, ui.today) : "";
  return html`
    <section data-day=${day ?? nothing} aria-labelledby="tasks-${key}">
      <div class="head ${tone ?? ""}">
        <h3 id="tasks-${key}">
          <span lang=${dated ? LANGUAGE : nothing}>${title}</span> ${date ? html`<span class="date" translate="no" lang=${LANGUAGE}>${date}</span>` : nothing}
          ${tasks.length > 0 ? html`<span class="count" translate="no">${counted(tasks.length)}</span>` : nothing}
        </h3>
        ${day ? iconButton("plus", LIST.addOn(words), () => ui.addOn(day)) : nothing}
      </div>
      ${tasks.length === 0
        ? html`<p class="nothing">${LIST.nothingOn}</p>`
        : html`
            <ul .style=${`padding: ${above}px 0 ${below}px`}>
              ${repeat(
                tasks.slice(first, end),
                ({ id }) => id,
                (task, index) => rowView(task, ui, { place: first + index + 1, of: tasks.length }),
              )}
            </ul>
          `}
    </section>
  `;
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

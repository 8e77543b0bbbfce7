// @ts-check
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { repeat } from "../../vendor/lit-html/directives/repeat.js";
import { iconButton } from "../../icons.js";
import { TEXTS } from "../texts.js";
import { counted, dayWords } from "../words.js";
import { addingView } from "./adding.js";
import { chartView } from "./chart.js";
import { moveView } from "./move.js";
import { rowView } from "./row.js";
import { connectionView, emptyView, loadingView, noticeView, problemView } from "./states.js";
import { barView, toolsView, viewsView } from "./tools.js";
/** @import {Ui} from "../ui.js" */
/** @import {Drawn} from "../window.js" */

/** Everything. @param {Ui} ui */
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
    ${pages.hasMore ? html`<p class="quiet more">${TEXTS.loading}</p>` : nothing}
  `;
}

/** @param {Drawn} drawn @param {Ui} ui */
function sectionView({ section, first, end, above, below }, ui) {
  const { key, title, date, day, tasks, tone } = section;
  const words = day ? dayWords(day, ui.today) : "";
  return html`
    <section data-day=${day ?? nothing} aria-labelledby="tasks-${key}">
      <div class="head ${tone ?? ""}">
        <h3 id="tasks-${key}">
          ${title} ${date ? html`<span class="date">${date}</span>` : nothing}
          ${tasks.length > 0 ? html`<span class="count">${counted(tasks.length)}</span>` : nothing}
        </h3>
        ${day ? iconButton("plus", TEXTS.addOn(words), () => ui.addOn(day)) : nothing}
      </div>
      ${tasks.length === 0
        ? html`<p class="nothing">${TEXTS.nothingOn}</p>`
        : html`
            <ul .style=${`padding: ${above}px 0 ${below}px`}>
              ${repeat(
                tasks.slice(first, end),
                ({ id }) => id,
                (task) => rowView(task, ui),
              )}
            </ul>
          `}
    </section>
  `;
}

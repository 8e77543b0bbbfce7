// @ts-check
import { html, svg } from "../../vendor/lit-html/lit-html.js";
import { TEXTS } from "../texts.js";
import { counted, fullDay } from "../words.js";
/** @import {DoneOnDay} from "../types" */

const HIGH = 40;
const STEP = 10; // units of the drawing for a day, of which the bar takes 7

/** How many tasks were done on each of the last days, as bars. @param {readonly DoneOnDay[]} days @param {string} today */
export function chartView(days, today) {
  const most = Math.max(1, ...days.map(({ done }) => done));
  const sum = days.reduce((all, { done }) => all + done, 0);
  const best = days.find(({ done }) => done === most);
  const text = TEXTS.chart(counted(sum), best ? fullDay(best.day, today) : "", counted(most), counted(days.at(-1)?.done ?? 0));
  return html`
    <figure class="chart">
      <figcaption><strong>${counted(sum)}</strong> ${TEXTS.chartTitle}</figcaption>
      <svg viewBox="0 0 ${days.length * STEP - 3} ${HIGH}" preserveAspectRatio="none" role="img" aria-label=${text}>
        ${days.map(({ day, done }, at) => {
          const high = done ? Math.max(4, (done / most) * HIGH) : 2;
          return svg`<rect class=${done ? "some" : ""} x=${at * STEP} y=${HIGH - high} width="7" height=${high} rx="2"><title>${fullDay(day, today)}: ${counted(done)}</title></rect>`;
        })}
      </svg>
    </figure>
  `;
}

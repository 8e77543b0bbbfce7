// @ts-check
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { icon } from "../../icons.js";
import { LIST } from "../../texts.js";
import { dayWords, plusDays } from "../../words.js";
import { PRIORITIES } from "../fields.js";
/** @import {Task} from "../types" */
/** @import {Ui} from "../ui.js" */

const WIDTH = 264; // px, as in tasks.css
const HEIGHT = 300; // px, about

/** Renders the dialog with the actions of one row. @param {Ui} ui */
export const menuView = (ui) => html`
  <dialog
    class="row-menu"
    aria-labelledby="row-menu-title"
    .style=${ui.rowMenu.acting ? placed(ui.rowMenu.acting.at) : ""}
    @close=${() => ui.rowMenu.acting && ui.rowMenu.close()}
    @click=${(/** @type {MouseEvent} */ { target, currentTarget }) => target === currentTarget && ui.rowMenu.close()}
  >
    ${ui.rowMenu.acting ? actionsOf(ui, ui.rowMenu.acting.task) : nothing}
  </dialog>
`;

/** Returns where the menu is shown, inside the window. @param {DOMRect} at the button that opened it */
const placed = ({ right, bottom }) =>
  `left: ${Math.max(8, Math.min(right, innerWidth - 8) - WIDTH)}px; top: ${Math.max(8, Math.min(bottom + 4, innerHeight - HEIGHT))}px`;

/** @param {Ui} ui @param {Task} task */
function actionsOf(ui, task) {
  const { today } = ui;
  const item = (/** @type {unknown} */ content, /** @type {() => unknown} */ work, pressed = false) =>
    html`<button type="button" aria-pressed=${pressed ? "true" : nothing} @click=${() => ui.rowMenu.close(work)}>${content}</button>`;
  const onDay = (/** @type {string} */ day) => item(dayWords(day, today), () => ui.actions.move([task], { day, time: null }), task.due === day);
  return html`
    <h2 id="row-menu-title" dir="auto" translate="no">${task.title}</h2>
    ${task.status === "pending"
      ? html`
          <div class="row" role="group" aria-label=${LIST.moveOne} translate="no">
            ${onDay(today)} ${onDay(plusDays(today, 1))} ${item(LIST.otherDay, () => ui.moveDialog.open([task]))}
          </div>
          <div class="row" role="group" aria-label=${LIST.priority}>
            ${Object.entries(PRIORITIES).map(([value, name]) =>
              item(
                html`<span class="priority ${value}">${icon("flag")}${name}</span>`,
                () => ui.actions.setPriority([task], /** @type {NonNullable<Task["priority"]> | "none"} */ (value)),
                value === (task.priority ?? "none"),
              ),
            )}
          </div>
        `
      : nothing}
    ${item([icon("select"), LIST.selectIt], () => ui.selection.pick(task, false))} ${item([icon("remove"), LIST.remove], () => ui.remove([task]))}
  `;
}

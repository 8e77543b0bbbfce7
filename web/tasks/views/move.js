// @ts-check
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { icon } from "../../icons.js";
import { LIST } from "../../texts.js";
import { clockWords, dayWords, fullDay, nextMonday, plusDays, removeBidiControls } from "../../words.js";
/** @import {Moving} from "../move-dialog.js" */
/** @import {Ui} from "../ui.js" */

/** Renders the dialog that moves tasks to another day. @param {Ui} ui */
export const moveView = (ui) => html`
  <dialog
    class="move"
    aria-labelledby="move-title"
    @close=${() => ui.moveDialog.moving && ui.moveDialog.close()}
    @click=${(/** @type {MouseEvent} */ { target, currentTarget }) => target === currentTarget && ui.moveDialog.close()}
  >
    ${ui.moveDialog.moving ? question(ui, ui.moveDialog.moving) : nothing}
  </dialog>
`;

/** @param {Ui} ui @param {Moving} moving */
function question(ui, moving) {
  const { today } = ui;
  const { understood } = moving.preview;
  const choices = /** @type {[string, string | null][]} */ ([
    [dayWords(today, today), today],
    [dayWords(plusDays(today, 1), today), plusDays(today, 1)],
    [LIST.nextWeek, nextMonday(today)],
    [LIST.noDate, null],
  ]);
  return html`
    <form
      method="dialog"
      autocomplete="off"
      @submit=${(/** @type {Event} */ event) => {
        event.preventDefault();
        void ui.moveDialog.submit();
      }}
    >
      <h2 id="move-title" dir="auto" translate="no">${moving.tasks.length === 1 ? LIST.movingOne(removeBidiControls(moving.tasks[0].title)) : LIST.movingMany(moving.tasks.length)}</h2>
      <input
        name="words"
        data-part="words"
        aria-label=${LIST.dateWords}
        aria-describedby="move-understood"
        placeholder=${LIST.dateWordsHint}
        autofocus
        .value=${moving.text}
        @input=${(/** @type {Event} */ event) => ui.moveDialog.write({ text: /** @type {HTMLInputElement} */ (event.target).value })}
      />
      <p id="move-understood" translate="no" class="quiet" role="status">
        ${understood?.due
          ? html`<button type="submit" class="chip when">
              ${icon("calendar")}${[fullDay(understood.due, today), understood.time && clockWords(understood.time)].filter(Boolean).join(", ")}
            </button>`
          : understood
            ? LIST.notUnderstood
            : nothing}
      </p>
      <div class="choices">
        ${choices.map(
          ([words, day]) => html`
            <button type="button" @click=${() => ui.moveDialog.close(day ? { day, time: null } : null)}>
              <span translate="no">${words}</span><span class="quiet" translate="no">${day ? fullDay(day, today) : ""}</span>
            </button>
          `,
        )}
      </div>
      <div class="pick">
        <label for="move-day">${LIST.pickDay}</label>
        <input
          id="move-day"
          type="date"
          min="1970-01-01"
          max="2999-12-31"
          .value=${moving.day}
          @change=${(/** @type {Event} */ event) => ui.moveDialog.write({ day: /** @type {HTMLInputElement} */ (event.target).value })}
        />
        <button type="button" class="button" ?disabled=${!moving.day} @click=${() => ui.moveDialog.close({ day: moving.day, time: null })}>${LIST.moveIt}</button>
      </div>
    </form>
  `;
}

// @ts-check
import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { problemOfDraft } from "../draft.js";
import { PRIORITIES } from "../fields.js";
import { icon, iconButton } from "../../icons.js";
import { LIST, TEXTS } from "../../texts.js";
import { between, clockWords, dayWords, fullDay, isBlank, LANGUAGE, reminderWords, removeBidiControls, repeatWords } from "../../words.js";
/** @import {Ui} from "../ui.js" */

/** Renders the line that adds tasks. @param {Ui} ui */
export function addingView(ui) {
  const { draft: adding } = ui;
  return html`
    <form
      class="adding"
      autocomplete="off"
      @submit=${(/** @type {Event} */ event) => {
        event.preventDefault();
        void ui.add();
      }}
    >
      ${icon("plus")}
      <input
        name="new"
        data-part="new"
        dir="auto"
        enterkeyhint="done"
        aria-label=${LIST.add}
        aria-describedby="understood"
        placeholder=${LIST.addHint}
        .value=${adding.text}
        @input=${(/** @type {Event} */ event) => ui.write(/** @type {HTMLInputElement} */ (event.target).value)}
      />
      ${isBlank(adding.text) ? nothing : html`<button type="submit" class="button primary">${LIST.addButton}</button>`}
      <div id="understood" translate="no">${isBlank(adding.text) ? nothing : chips(ui)}</div>
    </form>
    ${adding.aside.length > 0
      ? html`<ul class="aside" aria-label=${LIST.aside}>
          ${adding.aside.map((text, index) => asideView(text, index, ui))}
        </ul>`
      : nothing}
  `;
}

/** Renders the texts that were not added. @param {string} text @param {number} index @param {Ui} ui */
const asideView = (text, index, ui) => html`
  <li>
    <p><span class="quiet">${LIST.aside}:</span> <span dir="auto" translate="no">${text}</span></p>
    <button type="button" class="text-button" aria-label="${LIST.editAgain}: ${removeBidiControls(text)}" @click=${() => ui.resumeDraft(index)}>${LIST.editAgain}</button>
    ${iconButton("close", `${TEXTS.dismiss}: ${text}`, () => {
      ui.draft.dropAside(index);
      ui.changed();
    })}
  </li>
`;

/** Renders what the server understood. @param {Ui} ui */
function chips({ draft: adding, today, changed }) {
  const { due = null, time = null, repeat = null, remind = null, labels = [], priority = null, spans = [] } = adding.understood ?? {};
  const day = due ?? adding.defaultDay;
  const words = day && (between(today, day) > 1 ? fullDay(day, today) : dayWords(day, today));
  const problem = problemOfDraft(adding.text, adding.understood?.title);
  if (problem) return html`<span class="problem">${problem}</span>`;
  return html`
    ${words
      ? html`<span class="chip when" lang=${LANGUAGE}>
          ${icon("calendar")}${[words, time && clockWords(time)].filter(Boolean).join(", ")}
          ${iconButton("close", due ? LIST.notThis : LIST.noDate, () => {
            if (due) adding.keepAsTitle();
            else adding.day = null;
            changed();
          })}
        </span>`
      : nothing}
    ${repeat ? html`<span class="chip">${icon("repeat")}${repeatWords(repeat)}</span>` : nothing}
    ${remind === null ? nothing : html`<span class="chip">${icon("bell")}${reminderWords(remind)}</span>`}
    ${priority ? html`<span class="chip priority ${priority}">${icon("flag")}${PRIORITIES[priority]}</span>` : nothing}
    ${labels.map((label) => html`<span class="chip" dir="auto">#${label}</span>`)}
    ${spans.filter(({ kind }) => kind === "unread").map(({ text, reason }) => html`<span class="problem">${LIST.unread(removeBidiControls(text))} ${reason || LIST.dateHint}</span>`)}
  `;
}

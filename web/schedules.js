// @ts-check
import { link } from "./address.js";
import { timeWords } from "./chat/days.js";
import { ListDialog } from "./list-dialog.js";
import { TEXTS } from "./texts.js";
import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";

const MESSAGES = TEXTS.schedules;
const PREVIEW_AFTER = 200; // ms without a key
const LOOK_AGAIN = 2000; // ms, while one runs

/** @typedef {{run_id: string, at: string, state: string, answer: string, changes: string, problem: string | null}} Result */

/**
 * @typedef {object} Schedule
 * @property {string} id
 * @property {string} text
 * @property {string} when the repeat and time in words
 * @property {"on" | "paused" | "ended"} state
 * @property {string | null} next_at
 * @property {boolean} only_if_needed
 * @property {string | null} chat_id
 * @property {Result | null} last
 * @property {{at: string, reason: string} | null} skipped
 */

/** What the typed text says. @typedef {{text: string, repeat: string | null, time: string | null, when: string | null, next_at: string | null, problem: string | null}} Preview */

/** @typedef {"pause" | "resume" | "run" | "remove"} Deed */

/**
 * Shows the dialog that lists, adds and changes schedules.
 *
 * @param {object} page
 * @param {() => void} page.unauthorized
 * @param {(conversation: string) => void} page.open shows a conversation
 */
export async function showSchedules({ unauthorized, open }) {
  /** @type {Preview | null} */
  let preview = null;
  let typed = "";
  let typing = 0;
  let looking = 0;
  /** @type {ListDialog<Schedule>} */
  const dialog = new ListDialog(
    {
      name: "schedules",
      title: MESSAGES.title,
      path: "schedules",
      ended: MESSAGES.did.remove,
      content: () => content(dialog, show),
      form: () => form(preview, { type, add }),
      load,
    },
    unauthorized,
  );
  await dialog.open();

  /** Loads the schedules, again and again while one runs. */
  async function load() {
    clearTimeout(looking);
    const isLoaded = await dialog.loadRows();
    if (isLoaded && dialog.rows?.some(({ last }) => last?.state === "running")) looking = window.setTimeout(() => dialog.isOpen && dialog.refresh(), LOOK_AGAIN);
    return isLoaded;
  }

  /** @param {Event} event */
  function type({ target }) {
    clearTimeout(typing);
    typed = /** @type {HTMLInputElement} */ (target).value;
    typing = window.setTimeout(() => read(typed), PREVIEW_AFTER);
  }

  /** Returns what a text says, and shows it unless another one was typed meanwhile. @param {string} text @returns {Promise<Preview | null>} */
  async function read(text) {
    const response = await dialog.request("GET", `schedules/preview?${new URLSearchParams({ text })}`);
    const understood = response ? await response.json() : null;
    if (text === typed) {
      preview = text.trim() === "" ? null : understood;
      dialog.draw();
    }
    return understood;
  }

  /** @param {SubmitEvent} event */
  function add(event) {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.target);
    const fields = new FormData(form);
    void dialog.change(async () => {
      clearTimeout(typing);
      const understood = await read(String(fields.get("text")));
      if (!understood) return;
      const { text, repeat, time, problem } = understood;
      if (problem !== null) {
        preview = null; // which says the same
        return dialog.show({ problem });
      }
      if (!(await dialog.request("POST", "schedules", { text, repeat, time, only_if_needed: fields.has("only") }))) return;
      form.reset();
      typed = "";
      preview = null;
      await dialog.load(MESSAGES.added);
    });
  }

  /** @param {string} id @param {MouseEvent} click */
  function show(id, click) {
    if (click.ctrlKey || click.metaKey || click.shiftKey) return;
    click.preventDefault();
    dialog.close();
    open(id);
  }
}

/** @param {Deed} deed @param {string} id @param {ListDialog<Schedule>} dialog @param {MouseEvent} click */
function act(deed, id, dialog, click) {
  if (deed === "remove") return void dialog.end(`schedules/${id}`, click);
  if (click.detail > 1) return; // at a double click, another button is below the pointer
  void dialog.change(async () => {
    const response = await (deed === "run" ? dialog.request("POST", `schedules/${id}/run`) : dialog.request("PATCH", `schedules/${id}`, { paused: deed === "pause" }));
    if (response) await dialog.load(MESSAGES.did[deed]);
  });
}

/** @typedef {(id: string, click: MouseEvent) => void} Show shows a conversation */

/** @param {ListDialog<Schedule>} dialog @param {Show} show */
const content = (dialog, show) => html`
  <p>${MESSAGES.about}</p>
  ${dialog.rows?.length === 0 ? html`<p>${MESSAGES.none}</p>` : nothing}
  <ul>
    ${repeat(dialog.rows ?? [], ({ id }) => id, (schedule) => row(schedule, dialog, show))}
  </ul>
`;

/** @param {Preview | null} preview @param {{type: (event: Event) => void, add: (event: SubmitEvent) => void}} actions */
const form = (preview, { type, add }) => html`
  <form class="new" @submit=${add}>
    <label for="schedule-text">${MESSAGES.label}</label>
    <input id="schedule-text" name="text" required maxlength="1000" autocomplete="off" placeholder=${MESSAGES.example} aria-describedby="schedule-preview" @input=${type} />
    <p id="schedule-preview" class="quiet" translate="no">${preview ? previewWords(preview) : ""}</p>
    <label class="check"><input type="checkbox" name="only" /> ${MESSAGES.onlyIfNeeded}</label>
    <button type="submit" class="button primary">${MESSAGES.add}</button>
  </form>
`;

/** @param {Preview} preview */
const previewWords = ({ text, when, next_at, problem }) =>
  problem ?? html`${MESSAGES.understood(when ?? "", timeWords(new Date(next_at ?? "")))}: <bdi>${text}</bdi>`;

/** @param {Schedule} schedule @param {ListDialog<Schedule>} dialog @param {Show} show */
function row(schedule, dialog, show) {
  const { id, text, state, only_if_needed, chat_id, last, skipped } = schedule;
  /** @param {Deed} deed */
  const button = (deed) => html`
    <button type="button" class="button" aria-label=${MESSAGES.ofOne(MESSAGES.do[deed], text)} @click=${(/** @type {MouseEvent} */ click) => act(deed, id, dialog, click)}>${MESSAGES.do[deed]}</button>
  `;
  return html`
    <li>
      <div>
        <bdi translate="no">${text}</bdi><br />
        <span class="quiet">
          ${times(schedule)} ${only_if_needed ? MESSAGES.onlyReports : nothing}
          ${last ? html`<br />${MESSAGES.last[last.state](timeWords(new Date(last.at)))} ${last.problem ?? last.changes}` : nothing}
          ${skipped ? html`<br />${MESSAGES.skipped(timeWords(new Date(skipped.at)), skipped.reason)}` : nothing}
        </span>
        ${chat_id ? html`<br /><a href=${link({ conversation: chat_id })} aria-label=${MESSAGES.ofOne(MESSAGES.answers, text)} @click=${(/** @type {MouseEvent} */ click) => show(chat_id, click)}>${MESSAGES.answers}</a>` : nothing}
      </div>
      <div class="buttons">${state === "ended" ? nothing : button(state === "on" ? "pause" : "resume")} ${button("run")} ${button("remove")}</div>
    </li>
  `;
}

/** @param {Schedule} schedule */
function times({ when, state, next_at }) {
  if (state === "paused") return MESSAGES.paused(when);
  return next_at === null ? MESSAGES.ended(when) : MESSAGES.next(when, timeWords(new Date(next_at)));
}

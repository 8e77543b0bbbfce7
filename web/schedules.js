// @ts-check
import { link } from "./address.js";
import { timeWords } from "./chat/days.js";
import { sentence } from "./chat/protocol.js";
import { fetchFromHere, newKey } from "./http.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
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

/**
 * @typedef {object} State
 * @property {Schedule[] | null} schedules the oldest first; null until they are loaded
 * @property {Preview | null} preview
 * @property {string} [status]
 * @property {string} [problem]
 */

/** @typedef {"pause" | "resume" | "run" | "remove"} Deed */

/** @typedef {{add: (event: SubmitEvent) => void, type: (event: Event) => void, act: (deed: Deed, schedule: Schedule, click: MouseEvent) => void, open: (id: string, click: MouseEvent) => void}} Actions */

/**
 * Shows the dialog that lists, adds and changes schedules.
 *
 * @param {object} page
 * @param {() => void} page.unauthorized
 * @param {(conversation: string) => void} page.open shows a conversation
 */
export async function showSchedules({ unauthorized, open }) {
  const dialog = document.createElement("dialog");
  dialog.className = "sheet schedules";
  dialog.setAttribute("aria-labelledby", "schedules-title");
  dialog.addEventListener("close", () => dialog.remove());
  /** @type {State} */
  let state = { schedules: null, preview: null };
  let isBusy = false;
  let waiting = 0;
  /** @param {Partial<State>} now */
  const draw = (now) => {
    state = { ...state, ...now };
    render(content(state, actions), dialog);
  };
  /** @type {Actions} */
  const actions = {
    type({ target }) {
      clearTimeout(waiting);
      const { value } = /** @type {HTMLInputElement} */ (target);
      waiting = window.setTimeout(() => preview(value), PREVIEW_AFTER);
    },
    add(event) {
      event.preventDefault();
      void once(() => add(/** @type {HTMLFormElement} */ (event.target)));
    },
    act(deed, schedule, { detail }) {
      if (detail > 1) return; // at a double click, another button is below the pointer
      void once(async () => {
        if (!(await request(...requestFor(deed, schedule)))) return;
        await load(MESSAGES.did[deed]);
        if (deed === "remove") dialog.querySelector("h2")?.focus(); // the clicked button is gone
      });
    },
    open(id, click) {
      if (click.ctrlKey || click.metaKey || click.shiftKey) return;
      click.preventDefault();
      dialog.close();
      open(id);
    },
  };
  /** @param {() => Promise<void>} act */
  const once = async (act) => {
    if (isBusy) return;
    isBusy = true;
    draw({ status: undefined, problem: undefined }); // announces the second status like the first
    await act();
    isBusy = false;
  };
  /** @param {HTMLFormElement} form */
  const add = async (form) => {
    clearTimeout(waiting);
    const fields = new FormData(form);
    const read = await preview(String(fields.get("text")));
    if (!read) return;
    if (read.problem !== null) return draw({ problem: read.problem });
    const body = { text: read.text, repeat: read.repeat, time: read.time, only_if_needed: fields.has("only") };
    if (!(await request("POST", "schedules", body))) return;
    form.reset();
    await load(MESSAGES.added, null);
  };
  /** Returns what a text says, and shows it unless another one was typed meanwhile. @param {string} text @returns {Promise<Preview | null>} */
  const preview = async (text) => {
    const isEmpty = text.trim() === "";
    const response = await request("GET", `schedules/preview?${new URLSearchParams({ text })}`);
    /** @type {Preview | null} */
    const read = response && (await response.json());
    if (dialog.querySelector("input")?.value === text) draw({ preview: isEmpty ? null : read });
    return read;
  };
  /** @param {string} [status] @param {Preview | null} [typed] */
  const load = async (status, typed = state.preview) => {
    const response = await request("GET", "schedules");
    if (!response) return;
    draw({ schedules: (await response.json()).schedules, status, preview: typed });
    if (state.schedules?.some(({ last }) => last?.state === "running")) setTimeout(look, LOOK_AGAIN);
  };
  const look = () => void (dialog.isConnected && load(state.status));
  /** @param {string} method @param {string} path @param {object} [body] */
  const request = async (method, path, body) => {
    const headers = { ...(body && { "Content-Type": "application/json" }), ...(method === "POST" && { "Idempotency-Key": newKey() }) };
    const response = await fetchFromHere(path, { method, headers, ...(body && { body: JSON.stringify(body) }) }).catch(() => null);
    const isGone = method === "DELETE" && response?.status === 404; // it was deleted elsewhere
    if (response?.ok || isGone) return response;
    if (response?.status === 401) dialog.isConnected && unauthorized(); // else it is of a session before
    else draw({ problem: response ? await sentence(response) : TEXTS.unreachable });
    return null;
  };
  draw({});
  document.body.append(dialog);
  dialog.showModal();
  await load();
}

/** @param {Deed} deed @param {Schedule} schedule @returns {[string, string, object?]} */
function requestFor(deed, { id }) {
  if (deed === "remove") return ["DELETE", `schedules/${id}`];
  return deed === "run" ? ["POST", `schedules/${id}/run`] : ["PATCH", `schedules/${id}`, { paused: deed === "pause" }];
}

/** @param {State} state @param {Actions} actions */
const content = ({ schedules, preview, status, problem }, actions) => html`
  <h2 id="schedules-title" tabindex="-1" autofocus>${MESSAGES.title}</h2>
  <p>${MESSAGES.about}</p>
  ${schedules?.length === 0 ? html`<p>${MESSAGES.none}</p>` : nothing}
  <ul>
    ${repeat(schedules ?? [], ({ id }) => id, (schedule) => row(schedule, actions))}
  </ul>
  <p class="quiet" role="status" translate="no">${status ?? ""}</p>
  ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
  <form class="new" @submit=${actions.add}>
    <label for="schedule-text">${MESSAGES.label}</label>
    <input id="schedule-text" name="text" required maxlength="1000" autocomplete="off" placeholder=${MESSAGES.example} aria-describedby="schedule-preview" @input=${actions.type} />
    <p id="schedule-preview" class="quiet" translate="no">${preview ? previewWords(preview) : ""}</p>
    <label class="check"><input type="checkbox" name="only" /> ${MESSAGES.onlyIfNeeded}</label>
    <button type="submit" class="button primary">${MESSAGES.add}</button>
  </form>
  <form method="dialog"><button type="submit" class="button">${TEXTS.close}</button></form>
`;

/** @param {Preview} preview */
const previewWords = ({ text, when, next_at, problem }) =>
  problem ?? html`${MESSAGES.understood(when ?? "", timeWords(new Date(next_at ?? "")))}: <bdi>${text}</bdi>`;

/** @param {Schedule} schedule @param {Actions} actions */
function row(schedule, { act, open }) {
  const { id, text, state, only_if_needed, chat_id, last, skipped } = schedule;
  /** @param {Deed} deed */
  const button = (deed) => html`
    <button type="button" class="button" aria-label=${MESSAGES.ofOne(MESSAGES.do[deed], text)} @click=${(/** @type {MouseEvent} */ click) => act(deed, schedule, click)}>${MESSAGES.do[deed]}</button>
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
        ${chat_id ? html`<br /><a href=${link({ conversation: chat_id })} aria-label=${MESSAGES.ofOne(MESSAGES.answers, text)} @click=${(/** @type {MouseEvent} */ click) => open(chat_id, click)}>${MESSAGES.answers}</a>` : nothing}
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

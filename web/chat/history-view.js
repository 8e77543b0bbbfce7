// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { icon, iconButton } from "../icons.js";
import { removeBidiControls } from "../words.js";
import { TEXTS } from "../texts.js";
import { byDay, timesOfTwins } from "./days.js";
/** @import {Thread} from "./types" */
/** @import {Ui} from "./ui.js" */

const MAX_TITLE_LENGTH = 200;

/** @param {{title?: string | null}} thread */
const titleOf = ({ title }) => title || TEXTS.history.untitled;

/** @param {Ui} ui */
export function historyView(ui) {
  const { history } = ui.chat;
  const times = timesOfTwins(history.threads);
  const nothingThere = history.loaded && history.threads.length === 0;
  return html`
    <nav aria-label=${TEXTS.history.title}>
      <div class="panel-head">
        <h2>${TEXTS.history.title}</h2>
        ${iconButton("close", TEXTS.close, () => ui.showHistory(false))}
      </div>
      ${nothingThere && !history.titled ? nothing : searchField(ui)}
      ${nothingThere ? html`<p class="quiet" role="status">${history.titled ? TEXTS.history.notFound : TEXTS.history.none}</p>` : nothing}
      ${begunView(ui)}
      ${repeat(
        byDay(history.threads),
        ({ title }) => title,
        ({ title, threads }) => html`
          <h3>${title}</h3>
          <ul>
            ${repeat(
              threads,
              ({ id }) => id,
              (thread) => html`<li>${thread.id === ui.renaming ? renameForm(thread, ui) : entry(thread, times.get(thread.id), ui)}</li>`,
            )}
          </ul>
        `,
      )}
      ${history.hasMore
        ? html`<button type="button" class="text-button" @click=${() => ui.chat.moreHistory()}>${TEXTS.history.more}</button>`
        : nothing}
    </nav>
  `;
}

/** Renders the new conversations whose messages are not sent. @param {Ui} ui */
function begunView(ui) {
  const { begun } = ui.chat;
  if (begun.length === 0) return nothing;
  const entries = begun.map((conversation) => {
    const text = conversation.outbox.messages[0]?.message.text;
    return html`<li>
      <div class="entry">
        <button type="button" class="title" dir="auto" translate="no" title=${removeBidiControls(text ?? "")} @click=${() => ui.show(conversation)}>${text}</button>
      </div>
    </li>`;
  });
  return html`<h3>${TEXTS.talk.notSentYet}</h3>
    <ul>
      ${entries}
    </ul>`;
}

/** @param {Ui} ui */
const searchField = (ui) => html`
  <label class="search">
    ${icon("search")}
    <input
      type="search"
      dir="auto"
      autocomplete="off"
      maxlength=${MAX_TITLE_LENGTH}
      aria-label=${TEXTS.history.search}
      placeholder=${TEXTS.history.search}
      @input=${(/** @type {InputEvent} */ event) => ui.searchHistory(/** @type {HTMLInputElement} */ (event.target).value)}
      @keydown=${(/** @type {KeyboardEvent} */ event) => {
        if (event.key === "Escape" && /** @type {HTMLInputElement} */ (event.target).value) event.stopPropagation(); // it empties the field
      }}
    />
  </label>
`;

/** @param {Thread} thread @param {string | undefined} time that tells it apart from others of the same title @param {Ui} ui */
function entry(thread, time, ui) {
  const title = [titleOf(thread), time].filter(Boolean).join(" · ");
  const open = thread.id === ui.conversation.id;
  return html`
    <div class="entry" data-id=${thread.id} ?data-open=${open}>
      <button
        type="button"
        class="title"
        dir="auto"
        translate="no"
        title=${removeBidiControls(title)}
        aria-current=${open ? "true" : nothing}
        @click=${() => ui.open(thread.id)}
      >
        ${title}
      </button>
      ${ui.chat.isAnswered(thread) ? html`<span class="answered" role="img" aria-label=${TEXTS.history.answered}></span>` : nothing}
      <span class="entry-actions">
        ${iconButton("rename", `${TEXTS.history.rename} ${title}`, () => ui.startRename(thread))}
        ${iconButton("remove", `${TEXTS.history.remove} ${title}`, () => ui.askToDelete(thread))}
      </span>
    </div>
  `;
}

/** @param {Thread} thread @param {Ui} ui */
function renameForm(thread, ui) {
  return html`
    <form
      class="entry"
      @focusout=${(/** @type {FocusEvent} */ { currentTarget, relatedTarget }) => {
        const form = /** @type {HTMLFormElement} */ (currentTarget);
        if (document.hasFocus() && !form.contains(/** @type {Node | null} */ (relatedTarget))) form.requestSubmit();
      }}
      @submit=${(/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        const { title_field: field } = /** @type {HTMLFormElement} */ (event.target);
        ui.rename(thread, field.value.trim());
      }}
    >
      <input
        name="title_field"
        dir="auto"
        aria-label=${TEXTS.history.titleField}
        autocomplete="off"
        maxlength=${MAX_TITLE_LENGTH}
        .defaultValue=${ui.drafts.read("rename", thread.id) ?? thread.title ?? ""}
        @input=${(/** @type {{target: HTMLInputElement}} */ { target }) => ui.drafts.write("rename", thread.id, target.value)}
        @keydown=${(/** @type {KeyboardEvent} */ event) => {
          if (event.key !== "Escape" || event.isComposing) return;
          event.stopPropagation();
          ui.rename(thread, "");
        }}
      />
      <button type="submit" class="icon-button" aria-label=${TEXTS.save} title=${TEXTS.save}>${icon("check")}</button>
    </form>
  `;
}

/** @param {Ui} ui */
export const confirmDialog = (ui) => html`
  <dialog aria-labelledby="confirm-text">
    <p id="confirm-text">
      ${TEXTS.history.askBefore}<bdi translate="no">${ui.deleting ? titleOf(ui.deleting) : ""}</bdi>${TEXTS.history.askAfter}
    </p>
    <form method="dialog">
      <button type="submit" class="button">${TEXTS.cancel}</button>
      <button type="submit" class="button danger" @click=${() => ui.deleting && ui.chat.remove(ui.deleting)}>${TEXTS.history.remove}</button>
    </form>
  </dialog>
`;

// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { composerView } from "./composer.js";
import { chatKitIcon, icon, iconButton } from "../icons.js";
import { TEXTS } from "../texts.js";
import { loadLog } from "./load-log.js";
import { directionOf, plain } from "./plain.js";
import { outgoingView, questionsView, queueView } from "./waiting.js";
/** @import {Progress} from "./types" */
/** @import {Ui} from "./ui.js" */

const CLOCK_AFTER = 10; // s: the server says every 5 s that it waits for a model that loads, and how long

/** The views of messages, loaded with the first. @type {typeof import("./log.js") | undefined} */
let loaded;

/** @param {Ui} ui */
function messages(ui) {
  if (loaded) return loaded.messagesView(ui);
  void loadLog().then((module) => {
    loaded = module;
    ui.redraw();
  });
  return questionsView(ui.conversation.items);
}

/** @param {Ui} ui */
export function chatView(ui) {
  const { historyOpen, covered, scroll } = ui;
  const touched = { handleEvent: () => scroll?.touched(), passive: true };
  return html`
    ${bar(ui)}
    ${historyOpen && ui.historyViews ? ui.historyViews.historyView(ui) : nothing}
    <section class="talk" ?inert=${covered} @dragover=${ui.drag} @dragleave=${ui.drag} @drop=${ui.drag}>
      <div
        class="log"
        role="log"
        aria-label=${TEXTS.talk.title}
        aria-live="off"
        tabindex="0"
        @scroll=${() => scroll?.scrolled()}
        @contentvisibilityautostatechange=${() => scroll?.resized()}
        @wheel=${touched}
        @touchmove=${touched}
        @pointerdown=${touched}
        @keydown=${touched}
        @click=${(/** @type {Event} */ event) => ui.onLogClick(event)}
      >
        ${log(ui)}
      </div>
      <div class="foot">
        ${(scroll?.atEnd ?? true) || isNew(ui.conversation)
          ? nothing
          : html`<button type="button" class="newest" @click=${() => scroll?.toEnd()}>${icon("down")}${TEXTS.talk.newest}</button>`}
        ${connectionView(ui)} ${composerView(ui)}
      </div>
    </section>
    ${ui.historyViews ? ui.historyViews.confirmDialog(ui) : nothing}
  `;
}

/** @param {Ui} ui */
function bar(ui) {
  const { historyOpen, covered } = ui;
  const { title } = ui.conversation;
  return html`
    <div class="bar" ?inert=${covered}>
      ${iconButton("clock", TEXTS.history.title, () => ui.showHistory(!historyOpen), { expanded: historyOpen })}
      ${title ? html`<h2 dir="auto" translate="no">${title}</h2>` : html`<span class="spacer"></span>`}
      ${iconButton("plus", TEXTS.talk.begin, () => ui.open(null))}
    </div>
  `;
}

/** Whether nothing was said or is loaded yet. @param {Ui["conversation"]} conversation */
const isNew = ({ items, loading, streaming, outbox }) => items.length === 0 && !loading && !streaming && outbox.messages.length === 0;

/** @param {Ui} ui */
function log(ui) {
  const { conversation } = ui;
  const { notice } = ui.chat;
  const { items, pages, loading, sent } = conversation;
  const { messages: unsent } = conversation.outbox;
  const isUnknown = conversation.id !== null && ui.chat.connection.state === "lost";
  return html`
    ${notice ? html`<p class="notice" role="status">${icon("info")}<span>${notice}</span></p>` : nothing}
    ${pages.hasMore
      ? html`<button type="button" class="text-button older" @click=${() => ui.chat.loadOlder()}>${TEXTS.talk.older}</button>`
      : nothing}
    ${isNew(conversation) ? (isUnknown ? html`<p class="quiet loading">${TEXTS.talk.shownLater}</p>` : startScreen(ui)) : nothing}
    ${loading && items.length === 0 ? html`<p class="quiet loading">${TEXTS.talk.loading}</p>` : nothing}
    ${items.length === 0 ? nothing : messages(ui)}
    ${sent ? outgoingView([sent], ui) : nothing} ${activity(ui)} ${queueView(ui)}
    ${outgoingView(unsent.filter((outgoing) => outgoing !== sent), ui)} ${errorView(ui)}
  `;
}

/** @param {Ui} ui */
const startScreen = (ui) => html`
  <div class="start">
    <p class="greeting">${TEXTS.start.greeting}</p>
    <ul>
      ${(ui.options.startScreen?.prompts ?? []).map(({ label, prompt, icon: name }) => {
        const text = typeof prompt === "string" ? prompt : label;
        return html`<li>
          <button type="button" class="prompt" @click=${() => ui.deliver(text)}>${chatKitIcon(name) ?? nothing}<span>${label}</span></button>
        </li>`;
      })}
    </ul>
  </div>
`;

/** Renders the progress below the last item. @param {Ui} ui */
function activity(ui) {
  const { chat, conversation } = ui;
  const { progress, streaming, running, items, error, unanswered } = conversation;
  const slow = chat.api.slowRequests.waiting > 0 && streaming;
  if (progress && !(slow && progress.done)) return progressView(progress);
  if (slow) return html`<p class="progress"><span class="spinner"></span>${TEXTS.talk.slow}</p>`;
  const last = items.at(-1);
  if (streaming && !(last && last.type === "assistant_message" && last.content?.some(({ text }) => text))) {
    return html`<p class="progress waiting" role="img" aria-label=${TEXTS.talk.thinks}><span></span><span></span><span></span></p>`;
  }
  if (!(unanswered || running) || error) return nothing;
  if (chat.tabs.answering.has(conversation.id)) return html`<p class="progress">${TEXTS.talk.otherTab}</p>`;
  if (!unanswered) return nothing;
  return html`
    <p class="note">
      ${TEXTS.talk.noAnswer}
      <button type="button" class="text-button" @click=${() => ui.tryAgain("answer")}>${TEXTS.tryAgain}</button>
    </p>
  `;
}

/** @param {Progress} progress */
function progressView({ text, done, since }) {
  const seconds = Math.floor((Date.now() - since) / 1000);
  return html`
    <p class="progress">
      ${done ? icon("check") : html`<span class="spinner"></span>`}<span dir="auto" translate="no">${text}</span>
      ${done || seconds < CLOCK_AFTER ? nothing : html`<span role="timer">${TEXTS.talk.clock(seconds)}</span>`}
    </p>
  `;
}

/** @param {Ui} ui */
function errorView(ui) {
  const { error } = ui.conversation;
  if (!error) return nothing;
  const { message, retry } = error;
  return html`
    <div class="error" role="alert">
      ${icon("warning")}
      <p dir=${directionOf(message)}>${plain(message)}</p>
      ${retry
        ? html`<button type="button" class="button" @click=${() => ui.tryAgain(retry)}>${TEXTS.tryAgain}</button>`
        : nothing}
      <button type="button" class="button" @click=${() => ui.chat.dismiss()}>${TEXTS.dismiss}</button>
    </div>
  `;
}

/** @param {Ui} ui */
function connectionView({ chat, conversation }) {
  const { state } = chat.connection;
  if (state !== "lost" && chat.api.slowRequests.waiting && !conversation.streaming) {
    return html`<p class="connection"><span class="spinner"></span>${TEXTS.talk.slow}</p>`;
  }
  if (state === "ok") return nothing;
  return html`
    <p class="connection ${state}" role="status">
      ${state === "lost" ? html`<span class="spinner"></span>${TEXTS.talk.connectionLost}` : html`${icon("check")}${TEXTS.talk.connectionBack}`}
    </p>
  `;
}

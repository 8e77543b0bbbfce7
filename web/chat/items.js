// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { loadModule } from "../http.js";
import { TEXTS } from "../texts.js";
import { formatted } from "./formatted.js";
import { load, readable } from "./markdown.js";
import { directionOf, plain } from "./plain.js";
import { textOf } from "./tags.js";
import { editForm, versionsView } from "./versions.js";
import { widgetView } from "./widgets.js";
/** @import {Content, Item, Task, Workflow} from "./types" */
/** @import {Ui} from "./ui.js" */

const AT_ONCE = 5; // tags of a row

/** @param {Item} item @param {Ui} ui @returns {unknown} */
export function itemView(item, ui) {
  switch (item.type) {
    case "user_message":
      return item.id === ui.editing ? editForm(item, ui) : [question(item, ui), versionsView(item, ui)];
    case "assistant_message":
      return answer(item, ui);
    case "widget":
      return widgetView(item, ui);
    case "workflow":
      return item.workflow ? workOf(item, item.workflow, ui) : nothing;
    case "task":
      return item.task ? noticeView(item, item.task, ui) : nothing;
    default:
      return html`<p class="note" dir="auto">${TEXTS.talk.unknown(item.type)}</p>`; // the page may be older than the server
  }
}

/** @param {Item} item @param {Ui} ui */
const question = (item, ui) => html`
  <article class="question" translate="no" aria-label=${TEXTS.talk.you}>
    ${item.quoted_text ? html`<blockquote dir=${directionOf(item.quoted_text)}>${plain(item.quoted_text)}</blockquote>` : nothing}
    ${runsOf(item.content ?? []).map(([part, ...more]) => {
      if (part?.type !== "input_tag") return html`<span class="text" dir=${directionOf(part?.text ?? "")}>${plain(part?.text ?? "")}</span>`;
      const tags = [part, ...more].map((tag) => tagView(tag, ui));
      return tags.length > AT_ONCE ? html`<details class="tags"><summary>${TEXTS.talk.named(tags.length)}</summary>${tags}</details>` : tags;
    })}
  </article>
`;

/** Groups the parts of a message; adjacent tags form a group. @param {Content[]} parts */
const runsOf = (parts) =>
  parts.reduce((runs, part) => {
    const last = runs.at(-1);
    if (part.type === "input_tag" && last?.[0]?.type === part.type) last.push(part);
    else runs.push([part]);
    return runs;
  }, /** @type {Content[][]} */ ([]));

/** @param {Content} tag @param {Ui} ui */
function tagView({ id, text, interactive }, ui) {
  const open = ui.options.entities?.onClick;
  return interactive && open
    ? html`<button type="button" class="tag" dir="auto" @click=${() => open({ id: id ?? "", title: text, interactive })}>@${text}</button>`
    : html`<span class="tag" dir="auto">@${text}</span>`;
}

/** @param {Item} item @param {Ui} ui */
function answer(item, ui) {
  const parts = item.content ?? [];
  const open = ui.conversation.isOpen(item);
  if (!textOf(item)) return nothing;
  if (!readable()) void load().then(ui.redraw);
  return html`
    <article class="answer" aria-label=${TEXTS.talk.assistant} aria-busy=${open} translate=${open ? "no" : nothing}>
      <div class="markdown ${open ? "open" : ""}">${parts.map((part) => formatted(part, part.text, { open }))}</div>
    </article>
  `;
}

/** Renders why an answer ended early, or what was summarised. @param {Item} item @param {Task} task @param {Ui} ui */
function noticeView(item, task, ui) {
  const { items, error } = ui.conversation;
  const isLast = item === items.at(-1);
  if (isLast && error) return nothing; // the error has the same text
  const buttons = {
    continue: html`<button type="button" class="text-button" @click=${() => ui.deliver(TEXTS.talk.goOnMessage)}>${TEXTS.talk.goOn}</button>`,
    retry: html`<button type="button" class="text-button" @click=${() => ui.tryAgain("answer")}>${TEXTS.tryAgain}</button>`,
  };
  return html`
    <p class="note ending"><span dir=${directionOf(task.title ?? "")}>${plain(task.title ?? "")}</span> ${isLast && ui.ready ? item.actions?.map((action) => buttons[action]) : nothing}</p>
  `;
}

/** The views of an agent's work, loaded with the first. @type {typeof import("./work.js") | undefined} */
let agents;
/** @type {Promise<void> | undefined} */
let loading;

/** @param {Item} item @param {Workflow} workflow @param {Ui} ui */
function workOf(item, workflow, ui) {
  if (workflow.type !== "custom") return thoughts(workflow);
  if (!readable()) void load().then(ui.redraw);
  if (agents) return agents.workView(item, ui);
  loading ??= loadModule(() => import("./work.js")).then((module) => void (agents = module));
  void loading.then(ui.redraw);
  return thoughts(workflow);
}

/** @param {Workflow} workflow */
function thoughts({ tasks, summary, type }) {
  const running = type === "reasoning" ? TEXTS.talk.thinking : TEXTS.talk.working;
  const title = summary?.duration === undefined ? running : TEXTS.talk.thought(summary.duration);
  if (tasks.length === 0) return html`<p class="workflow" translate="no">${title}</p>`;
  return html`
    <details class="workflow">
      <summary translate="no">${title}</summary>
      <ul class="steps" translate="no">
        ${tasks.map((task) => html`<li><div class="markdown">${formatted(task, task.content ?? "")}</div></li>`)}
      </ul>
    </details>
  `;
}

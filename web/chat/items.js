// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { icon } from "../icons.js";
import { TEXTS } from "../texts.js";
import { formatted } from "./formatted.js";
import { link } from "./link.js";
import { load, readable } from "./markdown.js";
import { directionOf, plain } from "./plain.js";
import { textOf } from "./tags.js";
import { editForm, versionsView } from "./versions.js";
import { widgetView } from "./widgets.js";
/** @import {Annotation, Content, Item, Source, Task, Workflow} from "./types" */
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
      return item.task ? taskView(item, item.task, ui) : nothing;
    case "structured_input":
      return (item.inputs ?? []).map(({ question, answer }) => note(question, answer?.values.join(", ")));
    case "client_tool_call":
      return note(TEXTS.talk.step(item.name), item.status);
    case "generated_image":
      return html`<p class="note">${item.image ? link(item.image.url, TEXTS.talk.image) : TEXTS.talk.imageComes}</p>`;
    case "end_of_turn":
      return nothing;
    default:
      return note(TEXTS.talk.unknown(item.type));
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
  const sources = parts.flatMap(({ annotations }) => annotations ?? []);
  const open = ui.conversation.isOpen(item);
  if (!textOf(item)) return nothing;
  if (!readable()) void load().then(ui.redraw);
  return html`
    <article class="answer" aria-label=${TEXTS.talk.assistant} aria-busy=${open} translate=${open ? "no" : nothing}>
      <div class="markdown ${open ? "open" : ""}">${parts.map((part) => formatted(part, part.text, { open }))}</div>
      ${sources.length ? sourceList(sources) : nothing}
    </article>
  `;
}

/** Renders a step, or why an answer ended early. @param {Item} item @param {Task} task @param {Ui} ui */
function taskView(item, task, ui) {
  const { items, error } = ui.conversation;
  if (!item.actions) return html`<ul class="steps" translate="no">${step(task)}</ul>`;
  const isLast = item === items.at(-1);
  if (isLast && error) return nothing; // the error has the same text
  const buttons = {
    continue: html`<button type="button" class="text-button" @click=${() => ui.deliver(TEXTS.talk.goOnMessage)}>${TEXTS.talk.goOn}</button>`,
    retry: html`<button type="button" class="text-button" @click=${() => ui.tryAgain("answer")}>${TEXTS.tryAgain}</button>`,
  };
  return html`
    <p class="note ending"><span dir=${directionOf(task.title ?? "")}>${plain(task.title ?? "")}</span> ${isLast && ui.ready ? item.actions.map((action) => buttons[action]) : nothing}</p>
  `;
}

/** @param {Annotation[]} annotations */
const sourceList = (annotations) => html`
  <ul class="sources" aria-label=${TEXTS.talk.sources}>
    ${annotations.map(({ source }) => html`<li dir="auto">${sourceView(source)}</li>`)}
  </ul>
`;

/** @param {Source} source */
const sourceView = (source) => (source.url ? link(source.url, source.title) : source.title || source.filename);

/** The views of an agent's work, loaded with the first. @type {typeof import("./work.js") | undefined} */
let agents;

/** @param {Item} item @param {Workflow} workflow @param {Ui} ui */
function workOf(item, workflow, ui) {
  if (workflow.type !== "custom") return thoughts(workflow, ui);
  if (!readable()) void load().then(ui.redraw);
  if (agents) return agents.workView(item, ui);
  void import("./work.js").then((module) => ((agents = module), ui.redraw()), () => {}); // retried with the next drawing
  return thoughts(workflow, ui);
}

/** @param {Workflow} workflow @param {Ui} ui */
function thoughts({ tasks, summary, expanded, type }, ui) {
  const running = type === "reasoning" ? TEXTS.talk.thinking : TEXTS.talk.working;
  const title = summary?.title ?? (summary?.duration === undefined ? running : TEXTS.talk.thought(summary.duration));
  if (tasks.length === 0) return html`<p class="workflow" translate="no">${title}</p>`;
  return html`
    <details class="workflow" ?open=${expanded ?? false}>
      <summary translate="no">${title}</summary>
      <ul class="steps" translate="no">
        ${tasks.map(step)}
      </ul>
    </details>
  `;
}

/** @param {Task} task */
const step = (task) => {
  const { title, content, status_indicator, queries = [], sources = [] } = task;
  return html`
  <li>
    ${status_indicator === "complete" ? icon("check") : nothing}
    ${status_indicator === "loading" ? html`<span class="spinner"></span>` : nothing}
    ${title ? html`<p dir=${directionOf(title)}>${plain(title)}</p>` : nothing} ${content ? html`<div class="markdown">${formatted(task, content)}</div>` : nothing}
    ${queries.length ? html`<p dir="auto">${plain(queries.join(", "))}</p>` : nothing}
    ${sources.map((source) => html`<p dir="auto">${sourceView(source)}</p>`)}
  </li>
`;
};

/** @param {string} text @param {string} [more] */
const note = (text, more) => html`<p class="note" dir="auto">${text}${more ? html` <span class="quiet">${more}</span>` : nothing}</p>`;

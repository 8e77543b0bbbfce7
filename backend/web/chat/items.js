// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { icon, iconButton } from "./icons.js";
import { growing, link, markdown } from "./markdown.js";
import { textOf } from "./outgoing.js";
import { widgetView } from "./widgets.js";
/** @import {Annotation, Content, Item, Source, Task, Workflow} from "./types" */
/** @import {Ui} from "./ui.js" */

/** What was drawn of a text, as long as the text lives. @type {WeakMap<Content, unknown>} */
const drawn = new WeakMap();

/** @param {Item} item @param {Ui} ui @param {Item[]} group the items of its answer @returns {unknown} */
export function itemView(item, ui, group) {
  switch (item.type) {
    case "user_message":
      return question(item);
    case "assistant_message":
      return answer(item, ui, group);
    case "widget":
      return widget(item, ui, group);
    case "workflow":
      return item.workflow ? workflow(item.workflow) : nothing;
    case "task":
      return item.task ? html`<ul class="steps">${step(item.task)}</ul>` : nothing;
    case "structured_input":
      return (item.inputs ?? []).map(({ question, answer }) => note(question, answer?.values.join(", ")));
    case "client_tool_call":
      return note(`A step in the browser: ${item.name ?? "unnamed"}`, item.status);
    case "generated_image":
      return html`<p class="note">${item.image ? link(item.image.url, "Generated image") : "An image is being made."}</p>`;
    case "end_of_turn":
      return nothing;
    default:
      return note(`This kind of item cannot be shown here: ${item.type}`);
  }
}

/** @param {Item} item */
const question = (item) => html`
  <article class="question" aria-label="You">
    ${item.quoted_text ? html`<blockquote>${item.quoted_text}</blockquote>` : nothing}
    ${(item.content ?? []).map(({ type, text }) =>
      type === "input_tag" ? html`<span class="tag">${text}</span>` : html`<span class="text">${text}</span>`,
    )}
  </article>
`;

/** @param {Item} item @param {Ui} ui @param {Item[]} group */
function answer(item, ui, group) {
  const parts = item.content ?? [];
  const sources = parts.flatMap(({ annotations }) => annotations ?? []);
  const open = ui.conversation.isOpen(item);
  if (!textOf(item)) return nothing;
  return html`
    <article class="answer" aria-label="Assistant" aria-busy=${open}>
      <div class="markdown ${open ? "open" : ""}">${parts.map((part) => (open ? growing(part.text) : whole(part)))}</div>
      ${sources.length ? sourceList(sources) : nothing}
      ${open || item !== bearer(group) ? nothing : controls(item, ui, group)}
    </article>
  `;
}

/** @param {Content} part */
function whole(part) {
  if (!drawn.has(part)) drawn.set(part, markdown(part.text));
  return drawn.get(part);
}

/** What the buttons of an answer stand under: its last message, else its last widget. @param {Item[]} group */
const bearer = (group) =>
  group.findLast(({ type }) => type === "assistant_message") ?? group.findLast(({ type }) => type === "widget");

/** @param {Item} item @param {Ui} ui @param {Item[]} group */
function controls(item, ui, group) {
  const rated = ui.conversation.feedback.get(item.id);
  return html`
    <div class="controls">
      ${copyButton(item, textOf(item), ui)}
      ${ui.options.threadItemActions?.feedback
        ? [
            iconButton("good", "Good answer", () => ui.chat.rate(item.id, "positive"), rated === "positive"),
            iconButton("poor", "Poor answer", () => ui.chat.rate(item.id, "negative"), rated === "negative"),
          ]
        : nothing}
      ${againButton(ui, group)}
    </div>
  `;
}

/** @param {Item} item @param {string} text @param {Ui} ui */
function copyButton(item, text, ui) {
  if (!navigator.clipboard) return nothing; // the browser gives it to https and localhost only
  return iconButton(ui.copied === item.id ? "check" : "copy", "Copy", () => ui.copy(item, text));
}

/** Under the last answer only. @param {Ui} ui @param {Item[]} group */
function againButton(ui, group) {
  const { items, lastQuestion, streaming } = ui.conversation;
  const last = items.at(-1);
  if (!ui.options.threadItemActions?.retry || streaming || !lastQuestion || !last || !group.includes(last)) return nothing;
  return iconButton("retry", "Answer again", () => ui.again("answer"));
}

/** @param {Item} item @param {Ui} ui @param {Item[]} group */
function widget(item, ui, group) {
  const copied = item.widget?.type === "ListView" && item.copy_text;
  const bears = item === bearer(group);
  return html`
    <div class="widget-item">
      ${widgetView(item, ui)}
      ${copied || bears
        ? html`<div class="controls">
            ${copied ? copyButton(item, copied, ui) : nothing}
            ${bears ? againButton(ui, group) : nothing}
          </div>`
        : nothing}
    </div>
  `;
}

/** @param {Annotation[]} annotations */
const sourceList = (annotations) => html`
  <ul class="sources" aria-label="Sources">
    ${annotations.map(({ source }) => html`<li>${sourceView(source)}</li>`)}
  </ul>
`;

/** @param {Source} source */
const sourceView = (source) => (source.url ? link(source.url, source.title) : source.title || source.filename);

/** @param {Workflow} workflow */
function workflow({ tasks, summary, expanded, type }) {
  const running = type === "reasoning" ? "Thinking…" : "Working…";
  const title = summary?.title ?? (summary?.duration === undefined ? running : `Thought for ${summary.duration} s`);
  if (tasks.length === 0) return html`<p class="workflow">${title}</p>`;
  return html`
    <details class="workflow" ?open=${expanded ?? false}>
      <summary>${title}</summary>
      <ul class="steps">
        ${tasks.map(step)}
      </ul>
    </details>
  `;
}

/** @param {Task} task */
const step = ({ title, content, status_indicator, queries = [], sources = [] }) => html`
  <li>
    ${status_indicator === "complete" ? icon("check") : nothing}
    ${status_indicator === "loading" ? html`<span class="spinner"></span>` : nothing}
    ${title ? html`<p>${title}</p>` : nothing} ${content ? html`<div class="markdown">${markdown(content)}</div>` : nothing}
    ${queries.length ? html`<p>${queries.join(", ")}</p>` : nothing}
    ${sources.map((source) => html`<p>${sourceView(source)}</p>`)}
  </li>
`;

/** @param {string} text @param {string} [more] */
const note = (text, more) => html`<p class="note">${text}${more ? html` <span class="quiet">${more}</span>` : nothing}</p>`;

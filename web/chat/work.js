// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { filesView } from "../files.js";
import { icon } from "../icons.js";
import { TEXTS } from "../texts.js";
import { codeBlock } from "./code.js";
import { markdown } from "./markdown.js";
/** @import {Item, Task} from "./types" */
/** @import {Ui} from "./ui.js" */

/** What unfolds below a command, once it was asked for. @typedef {{stdout?: string, stderr?: string, problem?: string}} Details */

const FILE = /^\[Open ((?:\\.|[^\]\\])*)\]\([^\s()]*\/files\/([\w.~%/-]+)\)(?: \(([\d,]+) bytes\))?\s*([^]*)$/; // as in backend/tools/workspace/call_steps.py
const FENCED = /^(`{3,})\n([^]*)\n\1\s*$/;
const CODE = /^(?:(`{3,})\n([^]*?)\n\1\n\n)?(Exit code [^\n]*)/;

/** By item and number. @type {Map<string, Details | "asked">} */
const unfolded = new Map();

/** An agent's work: what it is to do, its steps, and how it ended. @param {Item} item @param {Ui} ui */
export function workView(item, ui) {
  const { tasks = [], summary, expanded } = item.workflow ?? {};
  const [asked, ...steps] = tasks;
  const who = asked?.title?.split(":")[0] ?? "";
  const open = ui.conversation.isOpen(item);
  const title = open ? TEXTS.work.works(who) : summary?.title ?? TEXTS.work.interrupted(who);
  return html`
    <details class="workflow work" translate="no" ?open=${open || expanded}>
      <summary dir="auto">${title}</summary>
      ${asked?.title ? html`<p dir="auto">${asked.title}</p>` : nothing}
      <ol class="steps">
        ${steps.map((task, index) => stepView(task, index + 1, item, ui))}
      </ol>
    </details>
    ${writtenView(steps, item)}
  `;
}

/** @param {Task} task @param {number} number its place in the workflow @param {Item} item @param {Ui} ui */
function stepView(task, number, item, ui) {
  const { title, status_indicator: state, icon: drawn } = task;
  return html`
    <li>
      ${state === "complete" ? icon("check") : state === "loading" ? html`<span class="spinner"></span>` : drawn === "info" ? icon("info") : nothing}
      ${title ? html`<p dir="auto">${title}</p>` : nothing} ${below(task, number, item, ui)}
    </li>
  `;
}

/** @param {Task} task @param {number} number @param {Item} item @param {Ui} ui */
function below(task, number, item, ui) {
  const { content = "", icon: drawn } = task;
  const [file] = drawn === "document" ? filesOf(task) : [];
  if (file) return file[4] ? changesView(FENCED.exec(file[4])?.[2] ?? "") : nothing;
  const ran = drawn === "square-code" && CODE.exec(content);
  if (ran) return commandView(ran, number, item, ui);
  const fenced = FENCED.exec(content);
  if (fenced) return html`<div class="markdown"><p class="written" dir="auto">${fenced[2]}</p></div>`;
  return content ? html`<div class="markdown">${markdown(content)}</div>` : nothing;
}

/** What was changed in a file. @param {string} changes */
const changesView = (changes) =>
  html`<pre class="diff" tabindex="0" dir="ltr">${changes
    .split("\n")
    .map((line) => (line[0] === "-" ? html`<del>${line}\n</del>` : line[0] === "+" ? html`<ins>${line}\n</ins>` : line))}</pre>`;

/** The files that were written. @param {Task[]} steps @param {Item} item */
function writtenView(steps, { thread_id: chat = "" }) {
  /** @type {Map<string, {file: RegExpExecArray, times: number}>} */
  const files = new Map();
  for (const file of steps.flatMap(filesOf)) files.set(file[2], { file, times: (files.get(file[2])?.times ?? 0) + 1 });
  if (files.size === 0) return nothing;
  return filesView(
    [...files.values()].map(({ file: [, label = "", path, size], times }) => ({
      times,
      chat,
      path,
      name: label.replace(/\\(.)/g, "$1"),
      size: size ? Number(size.replaceAll(",", "")) : null,
    })),
  );
}

/** What is linked before anything that was written by others. @param {Task} step */
function filesOf({ icon: drawn, content = "" }) {
  const ran = drawn === "square-code" ? CODE.exec(content) : null;
  let rest = ran ? content.slice(ran[0].length).trimStart() : drawn === "document" ? content : "";
  const found = [];
  for (let file; (file = FILE.exec(rest)); rest = file[4]) found.push(file);
  return found;
}

/** How a command ended; what it wrote is asked for when that is unfolded. @param {RegExpExecArray} found @param {number} number @param {Item} item @param {Ui} ui */
function commandView([, , code, ended], number, item, ui) {
  const key = `${item.id}/${number}`;
  const details = unfolded.get(key);
  const told = details === "asked" ? undefined : details;
  const unfold = async (/** @type {Event} */ { target }) => {
    ui.unfold();
    const { open } = /** @type {HTMLDetailsElement} */ (target);
    if (!open || (details && !told?.problem)) return;
    unfolded.set(key, "asked");
    const path = `/chats/${item.thread_id}/work/${item.id}/${number}`; // ids of the server's
    unfolded.set(key, await ui.chat.api.json(path).catch(({ message }) => ({ problem: message })));
    ui.unfold();
  };
  return html`
    ${code ? codeBlock(code) : nothing}
    <details class="output" @toggle=${unfold}>
      <summary>${ended}</summary>
      ${told?.stdout ? codeBlock(told.stdout, TEXTS.work.output) : nothing} ${told?.stderr ? codeBlock(told.stderr, TEXTS.work.errors) : nothing}
      ${told?.problem ? html`<p class="problem" role="alert">${told.problem}</p>` : nothing}
      ${told && !told.stdout && !told.stderr && !told.problem ? html`<p>${TEXTS.work.nothing}</p>` : nothing}
      ${told ? nothing : html`<p>${TEXTS.talk.loading}</p>`}
    </details>
  `;
}

// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { filesView } from "../files.js";
import { icon } from "../icons.js";
import { TEXTS } from "../texts.js";
import { codeBlock } from "./code.js";
import { formatted } from "./formatted.js";
import { directionOf, plain } from "./plain.js";
/** @import {Item, Task} from "./types" */
/** @import {Ui} from "./ui.js" */

/** The loaded output of a command. @typedef {{stdout?: string, stderr?: string, problem?: string}} Details */

const FILE = /^\[Open ((?:\\.|[^\]\\])*)\]\([^\s()]*\/files\/([\w.~%/-]+)\)(?: \(([\d,]+) bytes\))?\s*([^]*)$/; // as in backend/tools/workspace/call_steps.py
const FENCED = /^(`{3,})\n([^]*)\n\1\s*$/;
const CODE = /^(?:(`{3,})\n([^]*?)\n\1\n\n)?(Exit code [^\n]*)/;

/** By item and number of the step. @type {Map<string, Details | "loading">} */
const unfolded = new Map();

/** Renders an agent's work: its assignment, steps and outcome. @param {Item} item @param {Ui} ui */
export function workView(item, ui) {
  const { tasks = [], summary, expanded } = item.workflow ?? {};
  const [assignment, ...steps] = tasks;
  const who = assignment?.title?.split(":")[0] ?? "";
  const open = ui.conversation.isOpen(item);
  const title = open ? TEXTS.work.works(who) : summary?.title ?? TEXTS.work.interrupted(who);
  return html`
    <details class="workflow work" translate="no" ?open=${open || expanded}>
      <summary dir="auto">${title}</summary>
      ${assignment?.title ? html`<p dir=${directionOf(assignment.title)}>${plain(assignment.title)}</p>` : nothing}
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
      ${title ? html`<p dir=${directionOf(title)}>${plain(title)}</p>` : nothing} ${below(task, number, item, ui)}
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
  if (fenced) return html`<div class="markdown"><p class="written" dir=${directionOf(fenced[2] ?? "")}>${plain(fenced[2] ?? "")}</p></div>`;
  return content ? html`<div class="markdown">${formatted(task, content)}</div>` : nothing;
}

/** Renders the changes of a file. @param {string} changes */
const changesView = (changes) =>
  html`<pre class="diff" tabindex="0" dir="ltr">${changes
    .split("\n")
    .map((line) => (line[0] === "-" ? html`<del>${line}\n</del>` : line[0] === "+" ? html`<ins>${line}\n</ins>` : line))}</pre>`;

/** Renders the written files. @param {Task[]} steps @param {Item} item */
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

/** Returns the links at the beginning of a step, before text that others wrote. @param {Task} step */
function filesOf({ icon: drawn, content = "" }) {
  const ran = drawn === "square-code" ? CODE.exec(content) : null;
  let rest = ran ? content.slice(ran[0].length).trimStart() : drawn === "document" ? content : "";
  const found = [];
  for (let file; (file = FILE.exec(rest)); rest = file[4]) found.push(file);
  return found;
}

/** Renders how a command ended; its output is loaded when it is opened. @param {RegExpExecArray} found @param {number} number @param {Item} item @param {Ui} ui */
function commandView([, , code, ended], number, item, ui) {
  const key = `${item.id}/${number}`;
  const details = unfolded.get(key);
  const output = details === "loading" ? undefined : details;
  const unfold = async (/** @type {Event} */ { target }) => {
    ui.unfold();
    const { open } = /** @type {HTMLDetailsElement} */ (target);
    if (!open || (details && !output?.problem)) return;
    unfolded.set(key, "loading");
    const path = `chats/${item.thread_id}/work/${item.id}/${number}`; // safe ids of the server
    unfolded.set(key, await ui.chat.api.json(path).catch(({ message }) => ({ problem: message })));
    ui.unfold();
  };
  return html`
    ${code ? codeBlock(code) : nothing}
    <details class="output" @toggle=${unfold}>
      <summary>${ended}</summary>
      ${output?.stdout ? codeBlock(output.stdout, TEXTS.work.output) : nothing} ${output?.stderr ? codeBlock(output.stderr, TEXTS.work.errors) : nothing}
      ${output?.problem ? html`<p class="problem" role="alert">${output.problem}</p>` : nothing}
      ${output && !output.stdout && !output.stderr && !output.problem ? html`<p>${TEXTS.work.nothing}</p>` : nothing}
      ${output ? nothing : html`<p>${TEXTS.talk.loading}</p>`}
    </details>
  `;
}

// @ts-check
import { LIST, TEXTS } from "../../texts.js";
import { html, nothing, render } from "../../vendor/lit-html/lit-html.js";
import { counted, removeBidiControls } from "../../words.js";
import { labelsOf, problemOfLabels } from "../fields.js";
/** @import {Task} from "../types" */
/** @import {Ui} from "../ui.js" */

const MAX_OFFERED = 12;

/** A label that the user has, and how many open tasks have it, if that is known. @typedef {{label: string, count?: number}} Known */

/** Asks for labels: those of one task, or more for several tasks. @param {HTMLElement} place @param {Ui} ui @param {Task[]} tasks */
export function askForLabels(place, ui, tasks) {
  const dialog = Object.assign(document.createElement("dialog"), { className: "move" });
  dialog.setAttribute("aria-labelledby", "labels-title");
  const one = tasks.length === 1;
  let typed = one ? tasks[0].labels.join(", ") : "";
  const loaded = [...ui.reader.labels].sort((label, other) => label.localeCompare(other)).map((label) => ({ label }));
  /** Adds the labels of the task that no open one has. @param {Known[]} labels */
  const withOwn = (labels) => [...labels, ...loaded.filter(({ label }) => tasks[0].labels.includes(label) && !labels.some((other) => other.label === label))];
  /** @type {Known[]} */
  let known = loaded;
  let problem = "";
  const write = (/** @type {string} */ text) => {
    typed = text;
    problem = "";
    draw();
  };
  const choose = (/** @type {string} */ label) => {
    write(toggled(typed, known, label));
    dialog.querySelector("input")?.focus();
  };
  const save = (/** @type {Event} */ event) => {
    event.preventDefault();
    const labels = labelsOf(typed);
    const all = one ? [labels] : tasks.map((task) => [...new Set([...task.labels, ...labels])]);
    problem = all.map(problemOfLabels).find(Boolean) ?? "";
    if (problem) return draw();
    dialog.close();
    void ui.actions.label(tasks, typed);
  };
  const draw = () =>
    render(
      html`
        <form method="dialog" autocomplete="off" @submit=${save}>
          <h2 id="labels-title" dir="auto" translate="no">${one ? LIST.labelsOf(removeBidiControls(tasks[0].title)) : LIST.moreLabels(tasks.length)}</h2>
          <input
            aria-label=${LIST.labels}
            aria-invalid=${problem ? "true" : nothing}
            aria-describedby=${problem ? "labels-problem" : nothing}
            placeholder=${LIST.labelsHint}
            autofocus
            dir="auto"
            .value=${typed}
            @input=${(/** @type {{target: HTMLInputElement}} */ { target }) => write(target.value)}
          />
          ${problem ? html`<p class="problem" role="alert" id="labels-problem">${problem}</p>` : nothing}
          ${knownView(typed, known, choose)}
          <div class="ends">
            <button type="button" class="button" @click=${() => dialog.close()}>${TEXTS.cancel}</button>
            <button type="submit" class="button primary">${TEXTS.save}</button>
          </div>
        </form>
      `,
      dialog,
    );
  draw();
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  place.append(dialog);
  dialog.showModal();
  const show = (/** @type {Known[]} */ labels) => {
    known = withOwn(labels);
    draw();
  };
  void ui.api.labels().then(show, () => {}); // without a connection, those of the loaded tasks are offered
}

/** Renders the labels that the user has, or those that contain what is typed last. @param {string} typed @param {Known[]} known @param {(label: string) => void} choose */
function knownView(typed, known, choose) {
  const begun = begunIn(typed, known).toLocaleLowerCase();
  const offered = known.filter(({ label }) => label.toLocaleLowerCase().includes(begun)).slice(0, MAX_OFFERED);
  if (offered.length === 0) return nothing;
  const chosen = labelsOf(typed);
  return html`<div class="known" role="group" aria-label=${LIST.knownLabels} translate="no">
    ${offered.map(
      ({ label, count }) =>
        html`<button type="button" class="chip" dir="auto" aria-pressed=${chosen.includes(label)} @click=${() => choose(label)}>
          #${label} ${count === undefined ? nothing : html`<span class="quiet">${counted(count)}</span>`}
        </button>`,
    )}
  </div>`;
}

/** Returns the label that the text ends with, unless it is a known one. @param {string} typed @param {Known[]} known */
function begunIn(typed, known) {
  const last = typed.split(/[,#\n]/).at(-1)?.trim() ?? "";
  return known.some(({ label }) => label === last) ? "" : last;
}

/** Returns the text with a known label in place of the begun one, or without it. @param {string} typed @param {Known[]} known @param {string} label */
function toggled(typed, known, label) {
  const begun = begunIn(typed, known);
  const labels = labelsOf(typed).filter((one) => one !== begun);
  return (labels.includes(label) ? labels.filter((one) => one !== label) : [...labels, label]).join(", ");
}

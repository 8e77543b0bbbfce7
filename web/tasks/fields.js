// @ts-check
import { icon } from "../icons.js";
import { LIST } from "../texts.js";
import { html } from "../vendor/lit-html/lit-html.js";
import { dueInGrammar, dueWords, isBlank, isPast, LANGUAGE, leadTimeWords, lengthOf, reminderWords, removeBidiControls, repeatWords } from "../words.js";
/** @import {Clock} from "./data/reader.js" */
/** @import {Task, TaskPreview} from "./types" */
/** @import {Ui} from "./ui.js" */

export const MAX_TITLE_LENGTH = 200;
export const TITLE_TOO_LONG = "A title can have up to 200 characters.";
export const NO_TITLE = "A task needs a title.";
const MAX_DESCRIPTION_LENGTH = 4000;
const MAX_LABELS = 10;
const MAX_LABEL_LENGTH = 40;
const MAX_TIP_LENGTH = 300;
/** Signs keep the numbers in this order. @type {Record<string, string>} */
const REMINDERS = {
  default: "Default",
  ...Object.fromEntries([0, 5, 10, 30, 60, 1440].map((minutes) => [`+${minutes}`, leadTimeWords(minutes)])),
  ...{ other: "Other", none: "Never" },
};
const MAX_REMINDER = 40320;
/** @type {Record<string, string>} */
export const PRIORITIES = { high: "High", medium: "Medium", low: "Low", none: "None" };

/**
 * An input of the editor, in which `text` is written at first. With `lines` it is an area above the others, with `options` a
 * selection.
 * @typedef {object} Input
 * @property {string} name
 * @property {string} label
 * @property {(task: Task) => string} text
 * @property {"text" | "date" | "time"} [type]
 * @property {string} [hint]
 * @property {number} [lines]
 * @property {Record<string, string>} [options]
 * @property {(written: Record<string, string>) => boolean} [shown] always, if there is none
 */

/**
 * An edited task: the texts of all inputs, which of them differ from the task, and what the server has read of a new repeat.
 * @typedef {object} Edited
 * @property {Task} task
 * @property {Record<string, string>} written
 * @property {(name: string) => boolean} differs
 * @property {TaskPreview | null} understood
 */

/**
 * A field of a task: how it is edited, sent and shown. Its row here is all that the page needs besides its type.
 * @typedef {object} Field
 * @property {keyof Task} name of a task and of a request
 * @property {Input[]} inputs
 * @property {(edited: Edited) => unknown} value as a task has it
 * @property {(edited: Edited) => string} [check] returns why it cannot be saved
 * @property {(edited: Edited) => unknown} [send] if a request does not have the value, or "none" in place of null
 * @property {(edited: Edited) => Partial<Task>} [show] if the task shows more than the value until it is saved
 * @property {(task: Task, ui: Pick<Ui, "today" | "clock" | "navigation">, day: string | null) => unknown} [row] renders it beside the title,
 *   under the heading of a day or another
 */

/** In the order of the editor. @type {readonly Field[]} */
export const FIELDS = [
  {
    name: "title",
    inputs: [{ name: "title", label: "Title", lines: 1, text: ({ title }) => title }],
    value: ({ written }) => titleOf(written),
    check: ({ written }) => {
      if (isBlank(titleOf(written))) return NO_TITLE;
      return lengthOf(titleOf(written)) > MAX_TITLE_LENGTH ? TITLE_TOO_LONG : "";
    },
  },
  {
    name: "due",
    inputs: [
      { name: "date", label: "Date", type: "date", text: ({ due }) => due ?? "" },
      { name: "time", label: "Time", type: "time", text: ({ time }) => time ?? "" },
    ],
    value: ({ written }) => written.date || null,
    check: ({ written }) => (written.time && !written.date ? "Add a date for this time." : ""),
    send: ({ written, task }) => dueInGrammar(written.date || null, written.time, task.time !== null),
    show: ({ written }) => ({ due: written.date || null, time: written.time || null }),
    row: (task, ui, day) => {
      const { due, time } = task;
      const past = task.status === "pending" && isPast(task, ui.clock.now);
      const underDay = due === day; // the heading names it
      const words = due && dueWords({ due: underDay ? null : due, time }, ui.today);
      return words && html`<span class="due ${past ? "past" : ""}" lang=${LANGUAGE}>${icon(underDay ? "clock" : "calendar")}${words}</span>`;
    },
  },
  {
    name: "repeat",
    inputs: [{ name: "repeat", label: "Repeat", hint: "every Monday", text: ({ repeat }) => (repeat ? repeatWords(repeat) : "") }],
    value: ({ understood }) => understood?.repeat ?? null,
    check: ({ written, differs, understood }) => {
      if (!written.repeat.trim()) return "";
      if (differs("repeat") && !understood?.repeat) return "I don't recognise that repeat. Try “every Monday” or “every 2 weeks”.";
      return written.date ? "" : "Add a date for the first time.";
    },
    row: ({ repeat }) =>
      repeat && html`<span title=${repeatWords(repeat)}>${icon("repeat")}<span class="words">${repeatWords(repeat)}</span></span>`,
  },
  {
    name: "remind",
    inputs: [
      { name: "remind", label: "Reminder", options: REMINDERS, text: ({ remind }) => optionOf(remind) },
      {
        ...{ name: "minutes", label: "Minutes before", hint: "45", shown: (written) => written.remind === "other" },
        text: ({ remind }) => (optionOf(remind) === "other" ? String(remind) : ""),
      },
    ],
    value: ({ written }) => reminderOf(written),
    check: ({ written, differs }) => {
      if (!differs("remind") && !differs("minutes")) return "";
      const minutes = reminderOf(written);
      if (minutes === null || minutes === "none") return "";
      if (!Number.isInteger(minutes) || minutes < 0 || minutes > MAX_REMINDER) return "Write the minutes as a whole number of up to 40,320.";
      return written.date && written.time ? "" : "Add a time for this reminder.";
    },
    send: ({ written }) => reminderOf(written) ?? "default",
    row: ({ remind, status, snoozed_until }, { clock }) => {
      const words = status === "pending" && (snoozeWords(snoozed_until, clock) || reminderWords(remind));
      return words && html`<span title=${words}>${icon("bell")}<span class="words">${words}</span></span>`;
    },
  },
  {
    name: "priority",
    inputs: [{ name: "priority", label: "Priority", options: PRIORITIES, text: ({ priority }) => priority ?? "none" }],
    value: ({ written }) => (written.priority === "none" ? null : written.priority),
    row: ({ priority }) => priority && html`<span class="priority ${priority}">${icon("flag")}${PRIORITIES[priority]}</span>`,
  },
  {
    name: "description",
    inputs: [{ name: "description", label: "Description", lines: 2, hint: "Description", text: ({ description }) => description }],
    value: ({ written }) => written.description.trim(),
    check: ({ written }) => (lengthOf(written.description.trim()) > MAX_DESCRIPTION_LENGTH ? "A description can have up to 4,000 characters." : ""),
    row: ({ description }) =>
      description && html`<span class="notes" role="img" aria-label=${LIST.hasDescription} title=${removeBidiControls(start(description))}>${icon("notes")}</span>`,
  },
  {
    name: "labels",
    inputs: [{ name: "labels", label: "Labels", hint: "home, work", text: ({ labels }) => labels.join(", ") }],
    value: ({ written }) => labelsOf(written.labels),
    check: ({ written }) => problemOfLabels(labelsOf(written.labels)),
    row: ({ labels }, ui) =>
      labels.length > 0 &&
      labels.map((label) => html`<button type="button" class="label" tabindex="-1" dir="auto" @click=${() => ui.navigation.setFilter({ label })}>${label}</button>`),
  },
];

/** What a row shows beside the title, in this order. @type {readonly (keyof Task)[]} */
const ROW_ORDER = ["description", "labels", "repeat", "remind", "due", "priority"];
export const ROW_FIELDS = ROW_ORDER.flatMap((wanted) => FIELDS.find(({ name }) => name === wanted)?.row ?? []);

export const INPUTS = FIELDS.flatMap(({ inputs }) => inputs);

/** Why a task cannot be saved, and the input that it is about; none, if it is not known. @typedef {{text: string, input?: string}} Problem */

/** @param {Edited} edited @returns {Problem | null} why the task cannot be saved */
export function problemOf(edited) {
  for (const { check, inputs } of FIELDS) {
    const text = check?.(edited);
    if (text) return { text, input: inputs[0].name };
  }
  return null;
}

/** Returns what differs: the fields to send, and how the task is shown until they are saved. @param {Edited} edited */
export function changesOf(edited) {
  const changed = FIELDS.filter(({ inputs }) => inputs.some(({ name }) => edited.differs(name)));
  const fields = changed.map(({ name, value, send }) => [name, send ? send(edited) : (value(edited) ?? "none")]);
  const shown = changed.map(({ name, value, show }) => (show ? show(edited) : { [name]: value(edited) }));
  return { fields: Object.fromEntries(fields), as: /** @type {Partial<Task>} */ (Object.assign({}, ...shown)) };
}

/** Returns the option that shows when a task reminds. A task that an earlier page has stored has nothing. @param {Task["remind"] | undefined} remind */
function optionOf(remind = null) {
  if (remind === null) return "default";
  if (remind === "none") return "none";
  return `+${remind}` in REMINDERS ? `+${remind}` : "other";
}

/** @param {Record<string, string>} written @returns {Task["remind"]} */
function reminderOf({ remind, minutes }) {
  if (remind === "default") return null;
  if (remind === "none") return "none";
  const written = remind === "other" ? minutes.trim() : remind.slice(1);
  return /^\d+$/.test(written) ? Number(written) : NaN;
}

/** Returns until when a notification is put off, "" if it is not. @param {string | null | undefined} until @param {Clock} clock */
function snoozeWords(until, clock) {
  const { now } = clock;
  if (!until) return "";
  const { day, time } = clock.momentOf(until);
  if (`${day} ${time}` <= `${now.day} ${now.time}`) return "";
  return LIST.snoozedUntil(dueWords({ due: day === now.day ? null : day, time }, now.day));
}

/** @param {string} text */
const start = (text) => (text.length > MAX_TIP_LENGTH ? `${text.slice(0, MAX_TIP_LENGTH)}…` : text);

/** @param {Record<string, string>} written */
const titleOf = ({ title }) => title.replace(/\s+/g, " ").trim();

/** @param {string} text */
export const labelsOf = (text) => {
  const labels = text.split(/[,#\n]/).map((label) => label.replace(/^[@\s]+/, "").trim());
  return [...new Set(labels.filter((label) => !isBlank(label)))];
};

/** Returns why a task cannot have these labels. @param {string[]} labels */
export function problemOfLabels(labels) {
  if (labels.some((label) => lengthOf(label) > MAX_LABEL_LENGTH)) return "A label can have up to 40 characters.";
  return labels.length > MAX_LABELS ? "A task can have up to 10 labels." : "";
}

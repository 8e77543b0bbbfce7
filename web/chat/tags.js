// @ts-check
import { storage } from "./storage.js";
/** @import {Content, Item, Part} from "./types" */

const KNOWN = "todo.tags";
const MOST = 300;
export const MOST_TAGS = 99; // of a message

/**
 * How tasks that were named are written, such as "@Buy milk", and which task that is: what is typed, pasted or taken
 * back in between needs no looking after. The newest is the last.
 * @type {Map<string, string>}
 */
let known = new Map();
/** What `known` was read from: another tab, or who signs out, may have written there. @type {string | null} */
let read = null;

function remembered() {
  const stored = storage.get(KNOWN);
  if (stored !== read) {
    known = new Map(stored ? JSON.parse(stored) : []);
    read = stored;
  }
  return known;
}

/** How a task is written in a text; another of the same title that is named there already is told apart by its number. @param {string} id @param {string} title @param {string} [text] */
export function written(id, title, text = "") {
  const all = remembered();
  const plain = `@${title}`;
  const taken = all.has(plain) && all.get(plain) !== id && text.includes(plain);
  const name = taken ? `${plain} #${id}` : plain;
  if (all.get(name) === id) return name;
  all.delete(name);
  all.set(name, id);
  read = JSON.stringify([...all].slice(-MOST));
  storage.set(KNOWN, read);
  return name;
}

/** A text in pieces; those that name a task have its id. @param {string} text @returns {{text: string, id?: string | undefined}[]} */
export function pieces(text) {
  const all = remembered();
  const used = [...all.keys()].filter((name) => text.includes(name)).sort((one, other) => other.length - one.length);
  if (used.length === 0) return [{ text }];
  const names = used.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|");
  const parts = text.split(new RegExp(`(?<![\\p{L}\\p{N}])(${names})(?![\\p{L}\\p{N}])`, "u"));
  return parts.map((part, index) => ({ text: part, id: index % 2 ? all.get(part) : undefined })).filter((part) => part.text);
}

/** What is sent of a text; between two tags there need not be a space. @param {string} text @returns {Content[]} */
export function contentOf(text) {
  const parts = pieces(text);
  const between = (/** @type {number} */ at) => !parts[at]?.text.trim() && parts[at - 1]?.id && parts[at + 1]?.id;
  return parts
    .filter((_, at) => !between(at))
    .map(({ id, text: part }) =>
      id ? { type: "input_tag", id, text: part.slice(1), data: {}, interactive: true } : { type: "input_text", text: part },
    );
}

/** The same as the run API takes it. @param {string} text @returns {Part[]} */
export const partsOf = (text) =>
  contentOf(text).map(({ id, text: part }) => (id ? { type: "task", task_id: Number(id) } : { type: "text", text: part }));

/** What the run API tells of a message. @param {Part[]} parts @returns {Content[]} */
export const contentFrom = (parts) =>
  parts.map((part) =>
    part.type === "task"
      ? { type: "input_tag", id: String(part.task_id), text: part.title ?? "" }
      : { type: "input_text", text: part.text },
  );

/** How long the server takes it to be. @param {string} text */
export const lengthOf = (text) => pieces(text).reduce((length, part) => length + (part.id ? 0 : part.text.length), 0);

/** The text of a message, as it was written. @param {Partial<Item>} message */
export function textOf({ content = [] }) {
  let all = "";
  content.forEach(({ type, id, text }, at) => {
    if (type === "input_tag") all += `${content[at - 1]?.type === type ? " " : ""}${written(id ?? "", text, all)}`;
    else all += text;
  });
  return all;
}

/** What tells a message from others, whatever the titles of its tasks have become. @param {Content[]} [content] */
export const sentOf = (content = []) => content.map(({ type, id, text }) => (type === "input_tag" ? `@${id}` : text)).join("");

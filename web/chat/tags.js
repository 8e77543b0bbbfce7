// @ts-check
import { storage } from "./storage.js";
/** @import {Content, Item, Part} from "./types" */

const STORAGE_KEY = "todo.tags";
const MAX_STORED = 300; // tags
export const MAX_TAGS = 99; // of a message

/**
 * The names of mentioned tasks, such as "@Buy milk", with their ids, so that typed, pasted or restored text keeps its
 * mentions. The newest is the last.
 * @type {Map<string, string>}
 */
let known = new Map();
/** The stored text of `known`, which another tab may have changed. @type {string | null} */
let loadedFrom = null;

function loadNames() {
  const stored = storage.get(STORAGE_KEY);
  if (stored !== loadedFrom) {
    known = new Map(stored ? JSON.parse(stored) : []);
    loadedFrom = stored;
  }
  return known;
}

/** Returns the name of a task in a text; tasks with the same title get their number. @param {string} id @param {string} title @param {string} [text] */
export function nameTask(id, title, text = "") {
  const all = loadNames();
  const plain = `@${title}`;
  const taken = all.has(plain) && all.get(plain) !== id && text.includes(plain);
  const name = taken ? `${plain} #${id}` : plain;
  if (all.get(name) === id) return name;
  all.delete(name);
  all.set(name, id);
  loadedFrom = JSON.stringify([...all].slice(-MAX_STORED));
  storage.set(STORAGE_KEY, loadedFrom);
  return name;
}

/** Splits a text; parts that mention a task have its id. @param {string} text @returns {{text: string, id?: string | undefined}[]} */
export function pieces(text) {
  const all = loadNames();
  const used = [...all.keys()].filter((name) => text.includes(name)).sort((one, other) => other.length - one.length);
  if (used.length === 0) return [{ text }];
  const names = used.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|");
  const parts = text.split(new RegExp(`(?<![\\p{L}\\p{N}])(${names})(?![\\p{L}\\p{N}])`, "u"));
  return parts.map((part, index) => ({ text: part, id: index % 2 ? all.get(part) : undefined })).filter((part) => part.text);
}

/** Converts a text to ChatKit's content, without spaces between two tags. @param {string} text @returns {Content[]} */
export function contentOf(text) {
  const parts = pieces(text);
  const between = (/** @type {number} */ at) => !parts[at]?.text.trim() && parts[at - 1]?.id && parts[at + 1]?.id;
  return parts
    .filter((_, at) => !between(at))
    .map(({ id, text: part }) =>
      id ? { type: "input_tag", id, text: part.slice(1), data: {}, interactive: true } : { type: "input_text", text: part },
    );
}

/** Converts ChatKit's content to the parts of the run API. @param {Content[]} content @returns {Part[]} */
export const partsOf = (content) =>
  content.map(({ id, text }) => (id ? { type: "task", task_id: Number(id) } : { type: "text", text }));

/** Converts parts of the run API to ChatKit's content. @param {Part[]} parts @returns {Content[]} */
export const contentFrom = (parts) =>
  parts.map((part) =>
    part.type === "task"
      ? { type: "input_tag", id: String(part.task_id), text: part.title ?? "" }
      : { type: "input_text", text: part.text },
  );

/** Returns the length as the server counts it. @param {string} text */
export const lengthOf = (text) => pieces(text).reduce((length, part) => length + (part.id ? 0 : part.text.length), 0);

/** Returns the text of a message as the user wrote it. @param {Partial<Item>} message */
export function textOf({ content = [] }) {
  let all = "";
  content.forEach(({ type, id, text }, at) => {
    if (type === "input_tag") all += `${content[at - 1]?.type === type ? " " : ""}${nameTask(id ?? "", text, all)}`;
    else all += text;
  });
  return all;
}

// @ts-check
import { storage } from "./chat/storage.js";
import { KEYS } from "./texts.js";

/** @typedef {keyof typeof KEYS.does} Command */
/**
 * A command and its keys. A key is written as `Mod+Shift+z`, where `Mod` is Ctrl or ⌘, or as `g t` for one after the other.
 * `where`: everywhere outside text fields, or in the list and where nothing has the focus. `inText`: keys that count in text
 * fields, too.
 * @typedef {{command: Command, keys: readonly string[], where: "page" | "list", inText?: readonly string[]}} Shortcut
 */

/** All keys of the page, in the order in which they are shown. @type {readonly Shortcut[]} */
export const SHORTCUTS = [
  { command: "add", where: "page", keys: ["q"] },
  { command: "search", where: "page", keys: ["/", "Mod+k"], inText: ["Mod+k"] },
  { command: "assistant", where: "page", keys: ["c"] },
  { command: "today", where: "page", keys: ["g t"] },
  { command: "upcoming", where: "page", keys: ["g u"] },
  { command: "all", where: "page", keys: ["g a"] },
  { command: "done", where: "page", keys: ["g d"] },
  { command: "undo", where: "page", keys: ["Mod+z"] },
  { command: "redo", where: "page", keys: ["Mod+Shift+z"] },
  { command: "close", where: "page", keys: ["Escape"] },
  { command: "keys", where: "page", keys: ["?"] },
  { command: "next", where: "list", keys: ["ArrowDown", "j"] },
  { command: "previous", where: "list", keys: ["ArrowUp", "k"] },
  { command: "first", where: "list", keys: ["Home"] },
  { command: "last", where: "list", keys: ["End"] },
  { command: "open", where: "list", keys: ["Enter"] },
  { command: "complete", where: "page", keys: ["e", "Space"] },
  { command: "high", where: "page", keys: ["1"] },
  { command: "medium", where: "page", keys: ["2"] },
  { command: "low", where: "page", keys: ["3"] },
  { command: "none", where: "page", keys: ["4"] },
  { command: "date", where: "page", keys: ["t"] },
  { command: "label", where: "page", keys: ["l"] },
  { command: "later", where: "list", keys: ["Alt+ArrowDown"] },
  { command: "earlier", where: "list", keys: ["Alt+ArrowUp"] },
  { command: "remove", where: "list", keys: ["Delete"] },
  { command: "select", where: "page", keys: ["x"] },
  { command: "selectNext", where: "list", keys: ["Shift+ArrowDown"] },
  { command: "selectPrevious", where: "list", keys: ["Shift+ArrowUp"] },
  { command: "selectAll", where: "list", keys: ["Mod+a"] },
];

const SWITCH = "todo.keys";
const APPLE = /Mac|iPhone|iPad|iPod/.test(navigator.platform);
/** @type {Record<string, string>} */
const SYMBOLS = { ArrowDown: "↓", ArrowUp: "↑", Mod: APPLE ? "⌘" : "Ctrl" };
/** @type {Record<string, string>} */
const ARIA = { Mod: APPLE ? "Meta" : "Control" };

/** The keys that are a single character: users of speech input switch them off. */
export const singleKeys = {
  get on() {
    return storage.get(SWITCH) !== "off";
  },

  /** @param {boolean} on */
  set on(on) {
    storage.set(SWITCH, on ? null : "off");
  },
};

/** Whether a key needs no other one that is held down. @param {string} key */
const isSingle = (key) => /^.( .)?$/u.test(key);

/** Returns the key of an event as it is written here; empty where the system uses it. @param {KeyboardEvent} event */
function keyOf({ key, ctrlKey, metaKey, altKey, shiftKey }) {
  if (APPLE ? ctrlKey : metaKey) return "";
  const name = key === " " ? "Space" : key.length === 1 ? key.toLowerCase() : key;
  const shift = shiftKey && (name.length > 1 || /\p{L}/u.test(name)); // else it is needed for the character
  return [(ctrlKey || metaKey) && "Mod", altKey && "Alt", shift && "Shift", name].filter(Boolean).join("+");
}

/** Returns the shortcut of a key. @param {string} key @returns {Shortcut | undefined} */
const shortcutOf = (key) => SHORTCUTS.find(({ keys }) => keys.includes(key) && (singleKeys.on || !isSingle(key)));

/** Whether the key begins one of two keys. @param {string} key */
const isPrefix = (key) => singleKeys.on && SHORTCUTS.some(({ keys }) => keys.some((one) => one.startsWith(`${key} `)));

/** @param {Command} command */
function keysOf(command) {
  const { keys = [] } = SHORTCUTS.find((shortcut) => shortcut.command === command) ?? {};
  return keys.filter((key) => singleKeys.on || !isSingle(key));
}

/** Returns a key in words: "Ctrl+Shift+Z", "G then T". @param {string} key */
export function keyWords(key) {
  const words = (/** @type {string} */ one) => one.split("+").map((part) => SYMBOLS[part] ?? (part.length === 1 ? part.toUpperCase() : part)).join("+");
  return key.split(" ").map(words).join(` ${KEYS.then} `);
}

/** Returns a label with the first key of the command, for a tooltip. @param {string} label @param {Command} [command] */
export function withKey(label, command) {
  const [key] = command ? keysOf(command) : [];
  return key === undefined ? label : `${label} (${keyWords(key)})`;
}

/** Returns the keys of a command as `aria-keyshortcuts` has them, which knows no key after another. @param {Command} [command] */
export function ariaKeys(command) {
  const keys = command ? keysOf(command).filter((key) => !key.includes(" ")) : [];
  const text = keys.map((key) => key.split("+").map((part) => ARIA[part] ?? part).join("+")).join(" ");
  return text || null;
}

const PAUSE = 1500; // ms between one key and another after it
/** What a key does again while it is held down. @type {readonly Command[]} */
const REPEATED = ["next", "previous", "selectNext", "selectPrevious", "undo", "redo"];
const NO_TEXT = "checkbox, radio, button, submit, reset, range, color, file, image".split(", ");

/** Runs a command; false says that the key is not used. @typedef {(command: Command, target: HTMLElement) => boolean | void} Run */

/** Listens to the keys of the page and runs their commands. */
export class Keyboard {
  /** The key that was pressed before. */
  #before = "";
  #time = 0;
  /** The field that was typed in last, if it is empty by that: its browser can bring the text back. @type {EventTarget | null} */
  #emptied = null;
  #run;

  /** @param {Run} run */
  constructor(run) {
    this.#run = run;
    document.addEventListener("keydown", (event) => this.#pressed(event));
    document.addEventListener("input", ({ target }) => (this.#emptied = isEmptyLine(target) ? target : null));
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.defaultPrevented || event.isComposing || event.keyCode === 229 || isCovered()) return;
    const key = keyOf(event);
    const pair = event.timeStamp - this.#time < PAUSE ? `${this.#before} ${key}` : "";
    this.#before = "";
    const shortcut = shortcutOf(pair) ?? shortcutOf(key);
    if (!isTextField(target) && isPrefix(key)) [this.#before, this.#time] = [key, event.timeStamp];
    if (!shortcut || !(counts(shortcut, key, target) || this.#undoes(shortcut, target))) return;
    if (event.repeat && !REPEATED.includes(shortcut.command)) return event.preventDefault();
    if (this.#run(shortcut.command, target) === false) return;
    event.preventDefault();
    if (key === "Space") addEventListener("keyup", (up) => up.preventDefault(), { once: true, capture: true }); // it would click in Firefox
  }

  /** Whether undo and redo are of the list, because nothing was typed in the field; the editor has changes of its own. @param {Shortcut} shortcut @param {HTMLElement} target */
  #undoes({ command }, target) {
    return (command === "undo" || command === "redo") && isEmptyLine(target) && target !== this.#emptied && !target.closest(".task-form");
  }
}

/** Whether it is a field of one line, without text. @param {EventTarget | null} target @returns {target is HTMLInputElement} */
const isEmptyLine = (target) => target instanceof HTMLInputElement && ["text", "search"].includes(target.type) && target.value === "";

/** Whether a dialog or a menu is open, which has keys of its own. */
const isCovered = () => document.querySelector("dialog[open], :popover-open") !== null;

/** @param {HTMLElement} target */
function isTextField(target) {
  if (target.isContentEditable || target.matches("textarea, select, [role=textbox], [role=combobox]")) return true;
  return target instanceof HTMLInputElement && !NO_TEXT.includes(target.type);
}

/** Whether a key of the shortcut counts where the focus is. @param {Shortcut} shortcut @param {string} key @param {HTMLElement} target */
function counts({ command, where, inText = [] }, key, target) {
  const inList = target.closest("todo-tasks") !== null;
  if (isTextField(target)) {
    const toList = key === "ArrowDown" && target.matches("todo-tasks input, #search input");
    return inText.includes(key) || toList || (key === "Escape" && inList);
  }
  if (key === "Space") return target.dataset.part === "open"; // other buttons are clicked by it
  if (command === "open" && target.matches("button, a, summary, input")) return false;
  if (command === "close" && target.closest("todo-chat")) return false; // which closes what is open in it
  return where === "page" || inList || target === document.body;
}

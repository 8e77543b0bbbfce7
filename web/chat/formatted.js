// @ts-check
import { html, noChange } from "../vendor/lit-html/lit-html.js";
import { Directive, directive } from "../vendor/lit-html/directive.js";
import { codeBlock } from "./code.js";
import { CODE_NODES, parse, readable, renderBlocks } from "./markdown.js";
import { directionOf, endOfLines, PIECE, plain } from "./plain.js";
/** @import {Token} from "../vendor/marked/marked.esm.js" */

const MAX_NODES = 10_000; // of a text; what follows is shown as written
const MAX_MS = 300; // for reading a text; likewise
const DRAWING_MS = 8; // for reading texts, of one drawing
const DRAWING_NODES = 1000;
const NEAR_NODES = 600; // of a text, which are always laid out, as a text seldom has more
const NEAR_LENGTH = 12_000; // characters
const MAX_HEADER = 500; // characters of a table's header that is repeated
const FENCE = /^ {0,3}(`{3,}(?=[^`\n]*(?:\n|$))|~{3,})([^\n]*)(?:\n|$)/;

/**
 * A part of a text, with the number of elements that it needs. `header`: the table goes on after it, and has this header.
 * @typedef {{end: number, nodes: number, drawn: unknown, header?: string}} Part
 */

/** What may still be read in this drawing. */
let drawing = { deadline: Infinity, nodes: DRAWING_NODES, again: () => {} };

/** Begins a drawing. @param {() => void} again asks for another drawing, which reads what was too much for this one */
export function beginDrawing(again) {
  drawing = { deadline: performance.now() + DRAWING_MS, nodes: DRAWING_NODES, again };
}

/** Leaves what it shows as it is while its value is the same object. */
const same = directive(
  class extends Directive {
    /** @type {unknown} */
    #shown;

    /** @param {unknown} value */
    render(value) {
      if (value === this.#shown) return noChange;
      this.#shown = value;
      return value;
    }
  },
);

/** A text as Markdown, read in parts, so that a text that grows or that is long costs little at a time. */
class FormattedText {
  text = "";
  #formatted = false;
  /** What more text cannot change. @type {unknown[]} */
  #closed = [];
  #length = 0;
  #nodes = 0;
  #ms = 0;
  /** Of the table that goes on. */
  #header = "";
  /** The part that ends the text. @type {unknown} */
  #last = null;
  /** Whether everything is read. */
  #complete = true;

  /** @param {string} text */
  draw(text) {
    const isSame = text === this.text && this.#formatted === readable();
    if (!isSame && !(this.#formatted === readable() && text.startsWith(this.text))) this.#begin();
    if (!isSame || !this.#complete) this.#read(text);
    return this.#last === null ? this.#closed : [...this.#closed, same(this.#last)];
  }

  #begin() {
    this.#formatted = readable();
    this.#closed = [];
    this.#length = this.#nodes = this.#ms = 0;
    this.#header = "";
    this.#complete = false;
  }

  /** @param {string} text */
  #read(text) {
    this.text = text;
    text = text.replace(/\r\n?/g, "\n"); // as marked does, which counts characters
    this.#last = null;
    let isLast = this.#length === text.length;
    while (!isLast && drawing.nodes > 0 && performance.now() < drawing.deadline) {
      const begun = performance.now();
      const isCheap = this.#nodes < MAX_NODES && this.#ms < MAX_MS;
      const part = isCheap ? nextPart(text, this.#length, this.#header) : written(text, this.#length, text.length);
      const isFar = part.end > NEAR_LENGTH || this.#nodes + part.nodes > NEAR_NODES;
      const drawn = html`<div class="part ${isFar ? "far" : ""}">${part.drawn}</div>`;
      drawing.nodes -= part.nodes;
      isLast = part.end === text.length;
      if (isLast) this.#last = drawn;
      else this.#close(part, drawn, performance.now() - begun);
    }
    this.#complete = isLast;
    if (!isLast) drawing.again();
  }

  /** @param {Part} part @param {unknown} drawn @param {number} ms */
  #close({ end, nodes, header = "" }, drawn, ms) {
    this.#closed.push(same(drawn));
    this.#length = end;
    this.#nodes += nodes;
    this.#ms += ms;
    this.#header = header;
  }
}

/** @type {WeakMap<object, FormattedText>} */
const texts = new WeakMap();
/** The text that grew last. */
let growing = new FormattedText();

/**
 * Renders a text of a model as Markdown.
 * @param {object} owner has this text, and another one when the text changes
 * @param {string} text
 * @param {{open?: boolean}} [state] whether the text grows
 */
export function formatted(owner, text, { open = false } = {}) {
  let known = texts.get(owner);
  if (known?.text !== text) {
    const goesOn = growing.text !== "" && text.startsWith(growing.text);
    known = goesOn ? growing : new FormattedText();
    texts.set(owner, known);
  }
  if (open) growing = known;
  return known.draw(text);
}

/** Reads the blocks at the beginning of the rest of a text that end there. @param {string} text @param {number} start @param {string} header @returns {Part} */
function nextPart(text, start, header) {
  if (text.length - start <= PIECE) return blocksIn(text, start, text.length, header);
  const fence = FENCE.exec(text.slice(start, start + PIECE));
  if (fence) return code(text, start, fence);
  const end = endOfLines(text, start);
  if (end) return blocksIn(text, start, end, header);
  const line = text.indexOf("\n", start) + 1;
  return written(text, start, line || text.length); // a line that is too long
}

/** @param {string} text @param {number} start @param {number} end @param {string} header @returns {Part} */
function blocksIn(text, start, end, header) {
  const tokens = parse(header + text.slice(start, end));
  if (header && !(tokens?.[0]?.type === "table" && tokens[0].rows.length)) return blocksIn(text, start, end, ""); // it had ended
  if (!tokens) return written(text, start, end);
  if (end === text.length) return { end, ...renderBlocks(tokens) };
  const complete = withoutOpen(tokens);
  const length = complete.reduce((sum, { raw }) => sum + raw.length, -header.length);
  return { end: start + length, ...renderBlocks(complete), header: headerOf(complete) };
}

/** Returns the blocks to which nothing more can belong; a single block, which is too long, is divided. @param {Token[]} tokens */
function withoutOpen(tokens) {
  if (tokens.length > 3) return tokens.slice(0, -3); // as a list goes on after a space and what looks like a paragraph
  const last = tokens.findLastIndex(({ type }) => type !== "space");
  if (last > 0) return tokens.slice(0, last);
  const block = tokens[0];
  if (block?.type !== "list" || block.items.length < 2) return tokens;
  const items = block.items.slice(0, -1);
  return [{ ...block, items, raw: items.map((/** @type {Token} */ { raw }) => raw).join("") }];
}

/** Returns the header of a table that is divided. @param {Token[]} tokens */
function headerOf([block, next]) {
  if (block?.type !== "table" || next) return "";
  const [header] = /^[^\n]*\n[^\n]*\n/.exec(block.raw) ?? [""];
  return header.length > MAX_HEADER ? "" : header;
}

/** @param {string} text @param {number} start @param {number} end @returns {Part} */
function written(text, start, end) {
  const shown = text.slice(start, end);
  return { end, nodes: 1, drawn: html`<p class="written" dir=${directionOf(shown)}>${plain(shown)}</p>` };
}

/** Reads a block of code, which may be long. @param {string} text @param {number} start @param {RegExpExecArray} fence @returns {Part} */
function code(text, start, [opening, marks = "", language = ""]) {
  const from = start + opening.length;
  const closing = new RegExp(`^ {0,3}${marks[0]}{${marks.length},}[ \\t]*(?:\\n|$)`, "gm");
  closing.lastIndex = from;
  const found = closing.exec(text);
  const until = found ? found.index : text.length;
  const drawn = codeBlock(text.slice(from, until).replace(/\n$/, ""), language.trim());
  return { end: found ? closing.lastIndex : text.length, nodes: CODE_NODES, drawn };
}

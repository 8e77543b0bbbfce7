// @ts-check
import { html, noChange } from "../vendor/lit-html/lit-html.js";
import { Directive, directive } from "../vendor/lit-html/directive.js";
import { codeBlock } from "./code.js";
import { definitionsFor, definitionsOf } from "./definitions.js";
import { CODE_NODES, GOES_ON, parse, readable, renderBlocks } from "./markdown.js";
import { directionOf, endOfLines, PIECE, plain } from "./plain.js";
/** @import {Token} from "../vendor/marked/marked.esm.js" */
/** @import {Definitions} from "./definitions.js" */

const MAX_NODES = 10_000; // of a text; what follows is shown as written
const MAX_MS = 1000; // for reading a text; likewise
const DRAWING_MS = 8; // for reading texts, of one drawing
const DRAWING_NODES = 1000;
const NEAR_NODES = 600; // of a text, which are always laid out, as a text seldom has more
const NEAR_LENGTH = 12_000; // characters
const MAX_HEADER = 500; // characters of a table's header that is repeated
const BEFORE = new Set(["def", "space"]); // blocks of definitions
const FENCE = /^ {0,3}(`{3,}(?=[^`\n]*(?:\n|$))|~{3,})([^\n]*)(?:\n|$)/;

/**
 * A part of a text, with the number of elements that it needs. `header`: the table or list item goes on after it, and begins with this.
 * @typedef {{end: number, nodes: number, drawn: unknown, header?: string}} Part
 */

/** What the rest of a text needs of what is before and after it. @typedef {{header: string, definitions: Definitions}} Context */

/** @type {Definitions} */
const NO_DEFINITIONS = new Map();

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
  /** Of links in all parts; known at the end of the text. */
  #definitions = NO_DEFINITIONS;
  #hasEnded = false;
  /** The parts without the definitions, until they are read with them. @type {unknown[]} */
  #before = [];

  /** @param {string} text @param {boolean} open */
  draw(text, open) {
    const isSame = text === this.text && this.#formatted === readable();
    if (!isSame && !(this.#formatted === readable() && text.startsWith(this.text))) this.#begin();
    if (!isSame) this.#hasEnded = false;
    if (!open && !this.#hasEnded) this.#end(text);
    if (!isSame || !this.#complete) this.#read(text);
    return this.#parts;
  }

  get #parts() {
    const parts = this.#last === null ? this.#closed : [...this.#closed, same(this.#last)];
    return this.#complete ? parts : [...parts, ...this.#before.slice(parts.length)];
  }

  /** Finds the definitions of links; with them, parts are read again. @param {string} text */
  #end(text) {
    this.#hasEnded = true;
    if (text.length <= PIECE) return;
    const definitions = definitionsOf(text.replace(/\r\n?/g, "\n"));
    if (definitions.size === 0) return;
    const before = this.#parts;
    this.#begin();
    this.#before = before;
    this.#definitions = definitions;
  }

  #begin() {
    this.#formatted = readable();
    this.#closed = this.#before = [];
    this.#definitions = NO_DEFINITIONS;
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
      const part = isCheap ? nextPart(text, this.#length, this.#context) : written(text, this.#length, text.length);
      const isFar = part.end > NEAR_LENGTH || this.#nodes + part.nodes > NEAR_NODES;
      const drawn = html`<div class="part ${isFar ? "far" : ""}">${part.drawn}</div>`;
      drawing.nodes -= part.nodes;
      isLast = part.end === text.length;
      if (isLast) this.#last = drawn;
      else this.#close(part, drawn, performance.now() - begun);
    }
    this.#complete = isLast;
    if (isLast) this.#before = [];
    else drawing.again();
  }

  /** @returns {Context} */
  get #context() {
    return { header: this.#header, definitions: this.#definitions };
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
  return known.draw(text, open);
}

/** Reads the blocks at the beginning of the rest of a text that end there. @param {string} text @param {number} start @param {Context} context @returns {Part} */
function nextPart(text, start, context) {
  if (text.length - start <= PIECE) return blocksIn(text, start, text.length, context);
  const fence = FENCE.exec(text.slice(start, start + PIECE));
  if (fence) return code(text, start, fence);
  const end = endOfLines(text, start);
  if (end) return blocksIn(text, start, end, context);
  const line = text.indexOf("\n", start) + 1;
  return written(text, start, line || text.length); // a line that is too long
}

/** @param {string} text @param {number} start @param {number} end @param {Context} context @returns {Part} */
function blocksIn(text, start, end, { header, definitions }) {
  const tokens = parseWith(definitions, header + text.slice(start, end));
  if (header && !goesOn(tokens?.[0])) return blocksIn(text, start, end, { header: "", definitions }); // it had ended
  if (!tokens) return written(text, start, end);
  if (end === text.length) return { end, ...renderBlocks(tokens) };
  const complete = withoutOpen(tokens);
  const length = complete.reduce((sum, { raw }) => sum + raw.length, -header.length);
  return { end: start + length, ...renderBlocks(complete), header: headerOf(complete) };
}

/** Parses a part with the definitions that it uses. @param {Definitions} definitions @param {string} part */
function parseWith(definitions, part) {
  const lines = definitionsFor(definitions, part);
  const tokens = parse(lines + part);
  if (!lines || !tokens) return tokens;
  let length = 0;
  let count = 0;
  while (length < lines.length && BEFORE.has(tokens[count]?.type ?? "")) length += tokens[count++]?.raw.length ?? 0;
  if (length < lines.length) return parse(part);
  const blank = part.slice(0, length - lines.length); // belongs to the space below the definitions
  return [.../** @type {Token[]} */ (blank ? [{ type: "space", raw: blank }] : []), ...tokens.slice(count)];
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

/** Whether a block is divided at its header. @param {Token} [block] */
const goesOn = (block) => (block?.type === "table" ? block.rows.length > 0 : block?.type === "list");

/** Returns what the rest of a divided table or list item has to begin with. @param {Token[]} tokens */
function headerOf([block, next]) {
  if (next) return "";
  const header = block?.type === "table" ? /^[^\n]*\n[^\n]*\n/.exec(block.raw)?.[0] : block?.type === "list" && block.items.length === 1 ? itemHeader(block) : "";
  return !header || header.length > MAX_HEADER ? "" : header;
}

/** Returns the beginnings of a list item and of the open blocks in it. @param {Token} block @param {string} [indent] @returns {string} */
function itemHeader(block, indent = "") {
  if (block.type === "code") {
    const [opening, marks = ""] = FENCE.exec(block.raw) ?? [""];
    return opening && !block.raw.trimEnd().endsWith(`\n${marks}`) ? indent + opening : "";
  }
  const item = block.type === "list" && block.items.at(-1);
  const marker = item && /^ *(?:[*+-]|\d{1,9}[.)])(?: {1,4}(?! )| )/.exec(item.raw)?.[0];
  if (!marker) return "";
  const last = item.tokens.at(-1);
  return `${indent}${marker}${GOES_ON}\n${last ? itemHeader(last, indent + " ".repeat(marker.length)) : ""}`;
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

// @ts-check
import { html } from "../vendor/lit-html/lit-html.js";

/** The longest text that is laid out at once, in characters: a browser takes seconds for an endless line of 400,000. */
export const PIECE = 3000;
const GROUP = 16; // pieces
const BEFORE_CUT = 200; // characters in which a blank is looked for
const JOINED = /^[\p{M}\p{Lm}\u200d\udc00-\udfff]/u; // belongs to the character before

const SHORT = 500; // characters whose direction the browser looks for
const STRONG = /\p{L}/u;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/**
 * Returns the direction of a text for `dir`. Browsers look for that of `auto` again with each node that is added, which
 * takes seconds in a long block.
 * @param {string} text
 */
export function directionOf(text) {
  if (text.length <= SHORT) return "auto";
  return RIGHT_TO_LEFT.test(STRONG.exec(text)?.[0] ?? "") ? "rtl" : "ltr";
}

/** Renders a text as written. Of a long one, the browser only lays out the pieces that are in sight. @param {string} text */
export const plain = (text) => (text.length > PIECE ? grouped(piecesOf(text).map(far)) : text);

/** @param {unknown} content */
const far = (content) => html`<span class="piece far">${content}</span>`;

/** Groups pieces, as each one costs time even if it is not in sight. @param {unknown[]} pieces */
function grouped(pieces) {
  if (pieces.length <= GROUP) return pieces;
  return Array.from({ length: Math.ceil(pieces.length / GROUP) }, (_, at) => far(pieces.slice(at * GROUP, (at + 1) * GROUP)));
}

/** @param {string} text */
function piecesOf(text) {
  const pieces = [];
  for (let start = 0, end = 0; start < text.length; start = end) {
    end = endOfPiece(text, start);
    pieces.push(text.slice(start, end));
  }
  return pieces;
}

/** Returns where a piece ends: after a line, else after a word, else after a character. @param {string} text @param {number} start */
function endOfPiece(text, start) {
  const end = start + PIECE;
  if (end >= text.length) return text.length;
  const line = endOfLines(text, start);
  if (line) return line;
  const word = text.slice(end - BEFORE_CUT, end).lastIndexOf(" ") + 1;
  if (word) return end - BEFORE_CUT + word;
  let cut = end;
  while (cut > end - BEFORE_CUT && JOINED.test(text.slice(cut, cut + 2))) cut -= 1;
  return cut;
}

/** Returns where the lines that fit into a piece end; 0 if not even one does. @param {string} text @param {number} start */
export function endOfLines(text, start) {
  const length = text.slice(start, start + PIECE).lastIndexOf("\n") + 1;
  return length && start + length;
}

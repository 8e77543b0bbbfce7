// @ts-check
import { loadModule } from "../http.js";
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { TEXTS } from "../texts.js";
import { codeBlock } from "./code.js";
import { link, visible } from "./link.js";
import { directionOf } from "./plain.js";
/** @import {Token, Tokens} from "../vendor/marked/marked.esm.js" */

const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: "\u00a0" };

const DEEPEST = 20; // deeper nested text is shown as it is
export const GOES_ON = "\u200b"; // the text of a list item that began before
export const CODE_NODES = 20; // elements of a block of code with its button

/** Parses a text with marked, which is loaded with the first text. @type {((text: string) => Token[]) | null} */
let lexer = null;
/** @type {Promise<void> | null} */
let loading = null;

/** Until then, texts are shown as they are. */
export const readable = () => lexer !== null;

export const load = () =>
  (loading ??= loadModule(() => import("../vendor/marked/marked.esm.js")).then((marked) => void (lexer = lexerOf(marked))));

/** Characters that end a sentence or a quotation, not an address: “。”, “）” or “»”. An address may contain dashes and middle dots. */
const ENDS_ADDRESS = /(?![\x00-\x7f·・])[\p{Po}\p{Ps}\p{Pe}\p{Pi}\p{Pf}]/u;

/** GitHub's Markdown as models write it. @param {typeof import("../vendor/marked/marked.esm.js")} marked */
function lexerOf({ lexer, Tokenizer }) {
  class ModelTokenizer extends Tokenizer {
    /** Only two tildes strike through, because one means "about", as in "~5000 lines". @param {string} source @param {string} masked @param {string} [before] */
    del(source, masked, before) {
      return source.startsWith("~~") ? super.del(source, masked, before) : undefined;
    }

    /** @param {string} source */
    url(source) {
      const link = super.url(source);
      const end = link?.raw.search(ENDS_ADDRESS) ?? -1;
      return end < 0 ? link : super.url(source.slice(0, end));
    }
  }
  const options = { gfm: true, breaks: true, tokenizer: new ModelTokenizer() };
  return (/** @type {string} */ text) => lexer(text, options);
}

/** Parses a text into blocks; null if marked is not loaded, or the text nests too deeply. @param {string} text */
export function parse(text) {
  try {
    return lexer && lexer(text);
  } catch (error) {
    if (!(error instanceof Error) || !["RangeError", "InternalError"].includes(error.name)) throw error; // InternalError in Firefox
    return null;
  }
}

/** Renders blocks as templates, without HTML strings: markup in the text is shown as text. @param {Token[]} tokens */
export function renderBlocks(tokens) {
  depth = nodes = 0;
  const drawn = tokens.map((token) => block(/** @type {Tokens.Generic} */ (token)));
  return { nodes: nodes + tokens.length, drawn };
}

let depth = 0;
/** The number of nested tokens that were rendered. */
let nodes = 0;
let inLink = false;

/** An outer block has the direction of its own text. @param {Token} token */
const direction = ({ raw }) => (depth === 0 ? directionOf(raw) : nothing);

/** @param {Token[]} tokens @param {(token: Tokens.Generic) => unknown} draw */
function nested(tokens, draw) {
  nodes += Math.max(1, tokens.length);
  if (depth === DEEPEST) return tokens.map(({ raw }) => raw).join("");
  depth += 1;
  const drawn = tokens.map((token) => draw(/** @type {Tokens.Generic} */ (token)));
  depth -= 1;
  return drawn;
}

/** @param {Token[]} tokens */
const blocks = (tokens) => nested(tokens, block);

/** @param {Tokens.Generic} token @returns {unknown} */
function block(token) {
  switch (token.type) {
    case "space":
    case "def":
      return nothing;
    case "heading":
      return html`<div class="heading" dir=${direction(token)} role="heading" aria-level=${Math.min(token.depth + 2, 6)}>${inlines(token)}</div>`;
    case "code":
      nodes += CODE_NODES;
      return codeBlock(token.text, token.lang);
    case "blockquote":
      return html`<blockquote dir=${direction(token)}>${blocks(token.tokens ?? [])}</blockquote>`;
    case "hr":
      return html`<hr />`;
    case "list":
      return list(/** @type {Tokens.List} */ (token));
    case "table":
      return table(/** @type {Tokens.Table} */ (token));
    case "text": // the content of a tight list item
      return inlines(token);
    case "paragraph":
      return html`<p dir=${direction(token)}>${inlines(token)}</p>`;
    default:
      return token.type === "html" ? html`<p dir=${direction(token)}>${token.text.trim()}</p>` : inline(token);
  }
}

/** @param {Tokens.List} token */
function list({ ordered, start, items }) {
  const entries = items.map(({ raw, tokens }) => {
    const goesOn = tokens[0]?.raw.trim() === GOES_ON;
    return html`<li class=${goesOn ? "goes-on" : nothing} dir=${directionOf(raw)}>${entry(goesOn ? tokens.slice(1) : tokens, block)}</li>`;
  });
  return ordered ? html`<ol start=${start || 1}>${entries}</ol>` : html`<ul>${entries}</ul>`;
}

/** @param {Tokens.Table} token */
const table = (token) => html`
  <div class="table" tabindex="0" dir=${direction(token)}>
    <table>
      <thead>
        <tr>${token.header.map((cell) => html`<th scope="col">${inlines(cell)}</th>`)}</tr>
      </thead>
      <tbody>
        ${token.rows.map((row) => html`<tr>${row.map((cell) => html`<td>${inlines(cell)}</td>`)}</tr>`)}
      </tbody>
    </table>
  </div>
`;

/** @param {{tokens?: Token[], text?: string}} token @returns {unknown} */
const inlines = ({ tokens, text }) => (tokens ? entry(tokens, inline) : decoded(text ?? ""));

/**
 * Renders a list item; in a checklist, the text after a ticked box is struck through, but not nested lists.
 * @param {Token[]} tokens
 * @param {(token: Tokens.Generic) => unknown} draw
 */
function entry(tokens, draw) {
  const [box, ...rest] = tokens;
  if (box?.type !== "checkbox" || !("checked" in box && box.checked)) return nested(tokens, draw);
  const inner = rest.findIndex(({ type }) => type === "list");
  const end = inner < 0 ? rest.length : inner;
  return [inline(box), html`<s class="through">${nested(rest.slice(0, end), draw)}</s>`, nested(rest.slice(end), draw)];
}

/** @param {Tokens.Generic} token @returns {unknown} */
function inline(token) {
  switch (token.type) {
    case "strong":
      return html`<strong>${inlines(token)}</strong>`;
    case "em":
      return html`<em>${inlines(token)}</em>`;
    case "del":
      return html`<del>${inlines(token)}</del>`;
    case "codespan":
      return html`<code dir="ltr">${shown(token.text)}</code>`;
    case "br":
      return html`<br />`;
    case "link":
      return link(token.href, linkContent(token), token.text);
    case "image":
      return inLink ? shown(token.text) : link(token.href, visible(token.text), token.text);
    case "checkbox":
      return html`<span class="checkbox" role="img" ?data-done=${token.checked} aria-label=${token.checked ? TEXTS.talk.done : TEXTS.talk.notDone}></span> `;
    case "text":
      return token.tokens ? inlines(token) : decoded(token.text);
    default:
      return shown(token.type === "html" || token.type === "escape" ? token.text : token.raw);
  }
}

/** Decodes character references. @param {string} text */
const decoded = (text) =>
  shown(text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (_, name) => ENTITIES[/** @type {keyof typeof ENTITIES} */ (name)]));

/** In a link, nothing is hidden that could make it look like another address. @param {string} text */
const shown = (text) => (inLink ? visible(text) : text);

/** @param {Tokens.Generic} token */
function linkContent(token) {
  inLink = true;
  const content = inlines(token);
  inLink = false;
  return content;
}

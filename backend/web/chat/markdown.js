// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { lexer } from "../vendor/marked/marked.esm.js";
/** @import {Token, Tokens} from "../vendor/marked/marked.esm.js" */

const SCHEMES = new Set(["http:", "https:", "mailto:"]);
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: "\u00a0" };

/**
 * Markdown as templates. There is no HTML string anywhere: markup in the text is shown as the text it is.
 * @param {string} text
 */
export const markdown = (text) => blocks(lexer(text, { gfm: true, breaks: true }));

/** @param {Token[]} tokens */
const blocks = (tokens) => tokens.map((token) => block(/** @type {Tokens.Generic} */ (token)));

/** @param {Tokens.Generic} token @returns {unknown} */
function block(token) {
  switch (token.type) {
    case "space":
    case "def":
      return nothing;
    case "heading":
      return html`<div class="heading" role="heading" aria-level=${Math.min(token.depth + 2, 6)}>${inlines(token)}</div>`;
    case "code":
      return html`<pre tabindex="0"><code>${token.text}</code></pre>`;
    case "blockquote":
      return html`<blockquote>${blocks(token.tokens ?? [])}</blockquote>`;
    case "hr":
      return html`<hr />`;
    case "list":
      return list(/** @type {Tokens.List} */ (token));
    case "table":
      return table(/** @type {Tokens.Table} */ (token));
    case "text": // the content of a tight list item
      return inlines(token);
    case "paragraph":
      return html`<p>${inlines(token)}</p>`;
    default:
      return token.type === "html" ? html`<p>${token.text.trim()}</p>` : inline(token);
  }
}

/** @param {Tokens.List} token */
function list({ ordered, start, items }) {
  const entries = items.map((item) => html`<li>${blocks(item.tokens)}</li>`);
  return ordered ? html`<ol start=${start || 1}>${entries}</ol>` : html`<ul>${entries}</ul>`;
}

/** @param {Tokens.Table} token */
const table = ({ header, rows }) => html`
  <div class="table" tabindex="0">
    <table>
      <thead>
        <tr>${header.map((cell) => html`<th scope="col">${inlines(cell)}</th>`)}</tr>
      </thead>
      <tbody>
        ${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${inlines(cell)}</td>`)}</tr>`)}
      </tbody>
    </table>
  </div>
`;

/** @param {{tokens?: Token[], text?: string}} token @returns {unknown} */
const inlines = ({ tokens, text }) =>
  tokens ? tokens.map((token) => inline(/** @type {Tokens.Generic} */ (token))) : decoded(text ?? "");

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
      return html`<code>${token.text}</code>`;
    case "br":
      return html`<br />`;
    case "link":
      return link(token.href, inlines(token), token.text);
    case "image":
      return link(token.href, token.text || "image", token.text);
    case "checkbox":
      return html`<span class="checkbox" role="img" aria-label=${token.checked ? "done" : "open"}></span> `;
    case "text":
      return token.tokens ? inlines(token) : decoded(token.text);
    default:
      return token.type === "html" || token.type === "escape" ? token.text : token.raw;
  }
}

/**
 * A link that opens elsewhere; only its content where the address is not one of the web or of mail.
 * @param {string} href
 * @param {unknown} content
 * @param {string} [text]
 */
export function link(href, content, text) {
  let url;
  try {
    url = new URL(href);
  } catch {
    return content || text;
  }
  if (!SCHEMES.has(url.protocol)) return content;
  return html`<a href=${url.href} rel="noopener noreferrer nofollow" target="_blank">${content}</a>`;
}

/** Character references of plain text, as a browser would show them. @param {string} text */
const decoded = (text) =>
  text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (_, name) => ENTITIES[/** @type {keyof typeof ENTITIES} */ (name)]);

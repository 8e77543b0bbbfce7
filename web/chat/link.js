// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";

const SCHEMES = new Set(["http:", "https:", "mailto:"]);
/** Characters that nobody sees, or that change the order of others. */
const HIDDEN = /(?![\t\n])\p{Cc}|[\p{Bidi_Control}\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2028\u2029\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e00ff}]/gu;

/**
 * Renders a link that opens a new tab, and where it leads; only its text unless the address is http(s) or mailto.
 * @param {string} href
 * @param {unknown} content
 * @param {string} text of the content
 */
export function link(href, content, text) {
  let url;
  try {
    url = new URL(href);
  } catch {
    return content || text;
  }
  if (!SCHEMES.has(url.protocol)) return content;
  const target = targetOf(url);
  const shown = text.trim() ? content : target;
  return html`<a href=${url.href} rel="noopener noreferrer nofollow" target="_blank">${shown}</a>${isAddress(text.trim() || target, url)
    ? nothing
    : html`<small class="target" dir="ltr" translate="no"> (${target})</small>`}`;
}

/** Returns the host as browsers resolve it, names of other scripts in ASCII; of mailto, the recipients. @param {URL} url */
const targetOf = ({ protocol, host, pathname }) => (protocol === "mailto:" ? pathname : host);

/** Whether a text shows the address itself: its host as browsers resolve it, with nothing before it that could be taken for the host. @param {string} text @param {URL} url */
function isAddress(text, { href, protocol, host, pathname, username, password }) {
  if (username || password || visible(text) !== text) return false;
  if (protocol === "mailto:") return text === pathname || text === href;
  const address = text.startsWith(`${protocol}//`) ? text : `${protocol}//${text}`;
  const rest = address.slice(protocol.length + 2);
  return rest.startsWith(host) && URL.parse(address)?.href === href;
}

/** Shows the numbers of characters that hide something. @param {string} text */
export const visible = (text) => text.replace(HIDDEN, (character) => `[U+${character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}]`);

// @ts-check

const MOST = 200; // definitions of a text
const LONGEST = 20_000; // characters of all
const MOST_LINES = 5000; // that are a fence or a definition
const LABEL = "\\[((?:[^\\[\\]\\\\\\n]|\\\\.){1,200})\\]";
/** The fence of a code block, or a line such as “[1]: https://example.org "Title"”. */
const LINE = new RegExp(
  `^ {0,3}(?:(\`{3,}(?=[^\`\\n]*$)|~{3,})([^\\n]*)|${LABEL}: *(<[^<>\\n]*>|[^<\\s]\\S*)(?: +(?:"[^"\\n]*"|'[^'\\n]*'|\\([^()\\n]*\\)))?[ \\t]*)$`,
  "gm",
);
const REFERENCE = new RegExp(LABEL, "g");

/** @typedef {Map<string, string>} Definitions lines by label */

/** Compares labels as marked does. @param {string} label */
const keyOf = (label) => label.toLowerCase().replace(/\s+/g, " ");

/** Returns the definitions of a text's reference links. @param {string} text */
export function definitionsOf(text) {
  /** @type {Definitions} */
  const definitions = new Map();
  let fence = "";
  let length = 0;
  let lines = 0;
  if (!text.includes("]:")) return definitions;
  for (const [, marks, rest = "", label = "", target] of text.matchAll(LINE)) {
    if (++lines > MOST_LINES) break;
    if (marks && !fence) fence = marks;
    else if (marks?.startsWith(fence) && !rest.trim()) fence = "";
    if (!target || fence || definitions.has(keyOf(label))) continue;
    const line = `[${label}]: ${target}\n\n`;
    length += line.length;
    if (definitions.size === MOST || length > LONGEST) break;
    definitions.set(keyOf(label), line);
  }
  return definitions;
}

/** Returns the definitions that a part of the text needs, as lines. @param {Definitions} definitions @param {string} part */
export function definitionsFor(definitions, part) {
  if (definitions.size === 0) return "";
  const used = new Set([...part.matchAll(REFERENCE)].map(([, label = ""]) => keyOf(label)));
  return [...used].map((key) => definitions.get(key) ?? "").join("");
}

// @ts-check
import { MONTH } from "./days.js";
import { whenOf } from "./when.js";
/** @import {Moment} from "./clock.js" */
/** @import {When} from "./when.js" */

/**
 * What a line says of a new task: its title, and what the words at its end tell of date, repeat, labels and priority.
 * Only a phrase that is understood as a whole is taken; everything else stays in the title.
 * @typedef {{title: string, when: When | null, said: string, labels: string[], priority: Priority | null}} Sentence
 */
/** @typedef {"high" | "medium" | "low"} Priority */

const MOST_WORDS = 10;
const MOST_LABELS = 9;
const WORD = /[^\s,:;()]+/g;
const LABEL = /(?:^| )#([\p{L}][\p{L}\p{N}_-]{0,39})$/u;
const PRIORITIES = /** @type {[Priority, RegExp][]} */ ([
  ["high", /(?:^| |, ?)(?:!high|(?:(?:with|as|at) )?(?:a )?(?:high|top|urgent) priority)$/i],
  ["medium", /(?:^| |, ?)(?:!medium|(?:(?:with|as|at) )?(?:a )?(?:medium|normal) priority)$/i],
  ["low", /(?:^| |, ?)(?:!low|(?:(?:with|as|at) )?(?:a )?low priority)$/i],
]);
const PREPOSITIONS = "about after at before by for from in into near of on over to until with without";
/** Words after which a date belongs to what is before it. */
const UNFINISHED = new Set(`${PREPOSITIONS} a an the my our this that last next black good`.split(" "));
const PART_OF_DATE = new RegExp(`^(?:\\d+(?:st|nd|rd|th)|${MONTH}|days?|weeks?|months?|hours?|minutes?|every|each)$`);
const BEFORE_NUMBER = /(?:^|[ :])(?:at|by|on|in|until|before|after|every|each) \d+$/i;

/** @param {string} text @param {Moment} now @returns {Sentence} */
export function sentenceOf(text, now) {
  const tags = tagsAtEnd(text.trim().replace(/\s+/g, " "));
  const dated = leading(tags.rest, now) ?? atEnd(tags.rest, now);
  if (!dated) return { title: bare(tags.rest), when: null, said: "", labels: tags.labels, priority: tags.priority };
  const more = tagsAtEnd(dated.rest);
  return {
    title: bare(more.rest),
    when: dated.when,
    said: dated.said,
    labels: [...new Set([...more.labels, ...tags.labels])],
    priority: tags.priority ?? more.priority,
  };
}

/** The labels and the priority at the end. @param {string} text */
function tagsAtEnd(text) {
  /** @type {string[]} */
  const labels = [];
  /** @type {Priority | null} */
  let priority = null;
  for (let rest = text; ; text = rest) {
    const label = labels.length < MOST_LABELS ? LABEL.exec(rest) : null;
    /** @type {[Priority, RegExp] | undefined} */
    const level = priority ? undefined : PRIORITIES.find(([, said]) => said.test(rest));
    rest = label ? rest.slice(0, label.index) : level ? rest.replace(level[1], "") : "";
    if (!rest.trim()) return { rest: text, labels, priority }; // nothing more, or a title that is a tag only
    if (label) labels.unshift(label[1]);
    else if (level) [priority] = level;
  }
}

/** The longest date at the end, if it is all that tells a time there. @param {string} text @param {Moment} now */
function atEnd(text, now) {
  const last = lastDate(text, now);
  if (!last || isCut(last.rest)) return null;
  return lastDate(last.rest, now) ? null : last;
}

/** @param {string} text @param {Moment} now */
function lastDate(text, now) {
  const words = [...text.matchAll(WORD)];
  for (let first = Math.max(1, words.length - MOST_WORDS); first < words.length; first++) {
    const said = text.slice(words[first].index);
    const when = whenOf(said, now);
    if (when) return { when, said, rest: text.slice(0, words[first].index).replace(/[ ,:;(-]+$/, "") };
  }
  return null;
}

/** Of "tomorrow: call mum" the day, and the rest. @param {string} text @param {Moment} now */
function leading(text, now) {
  const [, said, rest] = /^([^:,]{2,60}(?:\d\d?:\d\d[^:,]{0,20})?)[:,] ?(.+)$/.exec(text) ?? [];
  const when = said ? whenOf(said, now) : null;
  return when && { when, said, rest };
}

/** Whether what stands before a date belongs to it, or the date to that. @param {string} before */
function isCut(before) {
  const word = before.match(WORD)?.at(-1)?.toLowerCase() ?? "";
  return UNFINISHED.has(word) || PART_OF_DATE.test(word) || BEFORE_NUMBER.test(before);
}

/** A title without quotation marks around all of it. @param {string} title */
const bare = (title) => /^(["'`])((?:(?!\1).)+)\1$/.exec(title)?.[2] ?? title;

// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { icon } from "../icons.js";
import { TEXTS } from "../texts.js";

/** A block of code with a button that copies it; the log hears its click, as what is drawn of a text is kept. @param {string} code @param {string} [language] */
export const codeBlock = (code, language) => html`
  <div class="code" dir="ltr">
    ${navigator.clipboard // the browser gives it to https and localhost only
      ? html`<div class="code-head">
          <span>${language?.split(/\s/)[0]}</span>
          <button type="button" class="icon-button" data-copies="code" aria-label=${TEXTS.talk.copyCode} title=${TEXTS.talk.copyCode}>
            ${icon("copy")}${icon("check")}
          </button>
        </div>`
      : nothing}
    <pre tabindex="0"><code>${code}</code></pre>
  </div>
`;

/** The button that was clicked to copy code, and the code. @param {Event} event */
export function codeToCopy({ target }) {
  const button = target instanceof Element ? target.closest('[data-copies="code"]') : null;
  return button && { button, code: button.closest(".code")?.querySelector("code")?.textContent?.replace(/\n$/, "") ?? "" };
}

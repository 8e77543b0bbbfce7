// @ts-check
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { icon } from "../icons.js";
import { TEXTS } from "../texts.js";
import { plain } from "./plain.js";

/** Renders a block of code with a button that copies it. The log handles the click, because rendered text is cached. @param {string} code @param {string} [language] */
export const codeBlock = (code, language) => html`
  <div class="code" dir="ltr">
    ${navigator.clipboard // needs https or localhost
      ? html`<div class="code-head">
          <span>${language?.split(/\s/)[0]}</span>
          ${copyButton(TEXTS.talk.copyCode)}
        </div>`
      : nothing}
    <pre tabindex="0"><code>${plain(code)}</code></pre>
  </div>
`;

/** @param {string} label @param {(event: Event) => void} [onClick] */
export const copyButton = (label, onClick) => html`
  <button type="button" class="icon-button copy" aria-label=${label} title=${label} @click=${onClick ?? nothing}>${icon("copy")}${icon("check")}</button>
`;

/** Returns the clicked copy button and its code. @param {Event} event */
export function codeToCopy({ target }) {
  const button = target instanceof Element ? target.closest(".code .copy") : null;
  return button && { button, code: button.closest(".code")?.querySelector("code")?.textContent?.replace(/\n$/, "") ?? "" };
}

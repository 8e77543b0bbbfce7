// @ts-check
import { keyWords, SHORTCUTS, singleKeys } from "./shortcuts.js";
import { KEYS, TEXTS } from "./texts.js";
import { html, render } from "./vendor/lit-html/lit-html.js";
/** @import {Shortcut} from "./shortcuts.js" */

/** Shows all keys of the page. @param {() => void} changed called when single keys are switched on or off */
export function showShortcuts(changed) {
  const dialog = Object.assign(document.createElement("dialog"), { className: "sheet keys" });
  dialog.setAttribute("aria-labelledby", "keys-title");
  const toggle = (/** @type {Event} */ { target }) => {
    singleKeys.on = /** @type {HTMLInputElement} */ (target).checked;
    changed();
  };
  render(
    html`
      <h2 id="keys-title">${KEYS.title}</h2>
      <p class="quiet">${KEYS.about}</p>
      <label class="single"><input type="checkbox" .checked=${singleKeys.on} @change=${toggle} /> ${KEYS.single}</label>
      <table>
        <thead>
          <tr><th scope="col">${KEYS.key}</th><th scope="col">${KEYS.what}</th></tr>
        </thead>
        <tbody>
          ${SHORTCUTS.map(row)}
        </tbody>
      </table>
      <form method="dialog"><button class="button">${TEXTS.close}</button></form>
    `,
    dialog,
  );
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** @param {Shortcut} shortcut */
const row = ({ command, keys }) => html`
  <tr>
    <td>${keys.map((key, at) => [at > 0 ? ` ${KEYS.or} ` : "", html`<kbd>${keyWords(key)}</kbd>`])}</td>
    <td>${KEYS.does[command]}</td>
  </tr>
`;

// @ts-check
import { icon } from "../icons.js";
import { html, nothing } from "../vendor/lit-html/lit-html.js";
/** @import {Icon} from "../icons.js" */

/**
 * A button that shows only an icon, as the rows and tools of the list need it.
 * @param {Icon} name
 * @param {string} label
 * @param {(event: Event) => void} onClick
 * @param {{tabindex?: string, pressed?: boolean, expanded?: boolean}} [more]
 */
export const iconButton = (name, label, onClick, { tabindex, pressed, expanded } = {}) => html`
  <button
    type="button"
    class="icon-button"
    aria-label=${label}
    title=${label}
    tabindex=${tabindex ?? nothing}
    aria-pressed=${pressed ?? nothing}
    aria-expanded=${expanded ?? nothing}
    @click=${onClick}
  >
    ${icon(name)}
  </button>
`;

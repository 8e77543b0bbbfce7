// @ts-check
import { removeBidiControls } from "./words.js";
import { ariaKeys, withKey } from "./shortcuts.js";
import { html, nothing } from "./vendor/lit-html/lit-html.js";

/** Drawn on a 20 × 20 grid. */
const PATHS = {
  plus: "M10 4v12M4 10h12",
  send: "M10 16V4.5M5 9l5-5 5 5",
  stop: "M6 6h8v8H6z",
  down: "M10 4v12M5 11l5 5 5-5",
  copy: "M7.5 7.5h8v9h-8zM12.5 7.5v-4h-8v9h3",
  check: "M4.5 10.5l3.5 3.5 7.5-8",
  retry: "M15.5 8A6 6 0 1 0 16 11.5M16 4v4.2h-4.2",
  repeat: "M4 9.5V8a2.5 2.5 0 0 1 2.5-2.5H16M13 2.5l3 3-3 3M16 10.5V12a2.5 2.5 0 0 1-2.5 2.5H4M7 17.5l-3-3 3-3",
  dots: "M5 9.6a.4.4 0 1 0 .01 0M10 9.6a.4.4 0 1 0 .01 0M15 9.6a.4.4 0 1 0 .01 0",
  rename: "M4 16l.8-3.4 8.7-8.7 2.6 2.6-8.7 8.7z",
  remove: "M4 6h12M8 6V4h4v2M5.5 6l.7 10.5h7.6L14.5 6M8.5 9v4.5M11.5 9v4.5",
  left: "M12 5l-5 5 5 5",
  right: "M8 5l5 5-5 5",
  close: "M5 5l10 10M15 5L5 15",
  good: "M3.5 9h3v7.5h-3zM6.5 9l3.2-5.8c1.2 0 2 .9 1.8 2.1L11 8h4.3c.9 0 1.5.8 1.3 1.7l-1.2 5.4c-.2.8-.9 1.4-1.7 1.4H6.5",
  poor: "M3.5 11h3V3.5h-3zM6.5 11l3.2 5.8c1.2 0 2-.9 1.8-2.1L11 12h4.3c.9 0 1.5-.8 1.3-1.7l-1.2-5.4c-.2-.8-.9-1.4-1.7-1.4H6.5",
  warning: "M10 3.5l7.5 13h-15zM10 8.5v3.5M10 14.2v.1",
  bell: "M5 14h10l-1.2-2V8.5a3.8 3.8 0 0 0-7.6 0V12zM8.5 16.5h3",
  calendar: "M3.5 5h13v11.5h-13zM3.5 8.5h13M7 3v3.5M13 3v3.5",
  profile: "M10 3.5a3 3 0 1 0 .01 0M4 16.5c.6-3.2 2.9-5 6-5s5.4 1.8 6 5",
  devices: "M9.5 12.5h-6.5v-8.5h11v3M2.5 16h7M12 9.5h5v7.5h-5zM14.4 14.6h.1",
  lock: "M5 9h10v7.5h-10zM7 9V6.5a3 3 0 0 1 6 0V9M10 12v1.5",
  token: "M7 9.2a3.6 3.6 0 1 0 .01 0M9.6 10.3l6.9-6.9M13.2 6.7l2.4 2.4",
  phone: "M6 3h8v14h-8zM9.6 14.6h.8",
  programs: "M7 3v4M13 3v4M5 7h10v3a5 5 0 0 1-10 0zM10 15v2.5",
  leave: "M8 4H4v12h4M12 6.5l3.5 3.5-3.5 3.5M15 10H7.5",
  system: "M3 4.5h14v9H3zM7.5 16.5h5",
  light: "M10 6.7a3.3 3.3 0 1 0 .01 0M10 2.5v1.3M10 16.2v1.3M2.5 10h1.3M16.2 10h1.3M4.7 4.7l.9.9M14.4 14.4l.9.9M4.7 15.3l.9-.9M14.4 5.6l.9-.9",
  dark: "M16 12A6.5 6.5 0 0 1 8 4a6.5 6.5 0 1 0 8 8z",
  search: "M8.8 3.5a5.3 5.3 0 1 0 .01 0M12.8 12.8l4 4",
  notes: "M4 5.5h.1M4 10h.1M4 14.5h.1M7.5 5.5H16M7.5 10H16M7.5 14.5H16",
  done: "M10 3a7 7 0 1 0 .01 0M6.8 10.2l2.3 2.3 4.1-4.6",
  tag: "M4 4h6l6.5 6.5-6 6L4 10zM7.2 7.2h.1",
  chat: "M3.5 4.5h13v9.5h-7l-3.5 3v-3h-2.5z",
  clip: "M14.5 9.5l-5 5a3 3 0 0 1-4.2-4.2l6-6a2 2 0 0 1 2.8 2.8l-6 6a1 1 0 0 1-1.4-1.4l5-5",
  clock: "M10 3.5a6.5 6.5 0 1 0 .01 0M10 6.5V10l2.5 1.8",
  filter: "M4 6h12M6.5 10h7M8.7 14h2.6",
  sort: "M6.5 4v12M3.5 13l3 3 3-3M13.5 16V4M10.5 7l3-3 3 3",
  flag: "M5.5 17V4h8.5l-1.8 3.5L14 11H5.5",
  restore: "M4.5 8A6 6 0 1 1 4 11.5M4 4v4.2h4.2",
  select: "M3.5 5l1.5 1.5L7.5 4M3.5 13.5L5 15l2.5-2.5M10.5 5.5h6M10.5 14h6",
  keys: "M2.5 5.5h15v9h-15zM5.5 8.5h.1M8.5 8.5h.1M11.5 8.5h.1M14.5 8.5h.1M6 11.5h8",
  info: "M10 3a7 7 0 1 0 .01 0M10 9.5v4M10 6.6v.1",
};

/** @typedef {keyof typeof PATHS} Icon */
/** @import {Command} from "./shortcuts.js" */

/** ChatKit's names of these icons. @type {Map<string | undefined, Icon>} */
const CHATKIT = new Map([
  ["check-circle", "done"],
  ["notebook", "notes"],
  ["plus", "plus"],
  ["reload", "repeat"],
]);

/** Renders ChatKit's icon of this name, if it is drawn here. @param {string} [name] */
export const chatKitIcon = (name) => {
  const drawn = CHATKIT.get(name);
  return drawn && icon(drawn);
};

/** @param {Icon} name */
export const icon = (name) =>
  html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;

/**
 * Renders a button with only an icon.
 * @param {Icon} name
 * @param {string} label
 * @param {(event: Event) => void} onClick
 * @param {{part?: string, tabindex?: string, pressed?: boolean, expanded?: boolean, disabled?: boolean, command?: Command}} [more] `part`: its name, by which it gets the focus; `command`: what the button does, whose key is shown
 */
export const iconButton = (name, label, onClick, { part, tabindex, pressed, expanded, disabled = false, command } = {}) => html`
  <button
    type="button"
    class="icon-button"
      data-part=${part ?? nothing}
      aria-label=${removeBidiControls(label)}
      title=${removeBidiControls(withKey(label, command))}
    aria-keyshortcuts=${ariaKeys(command) ?? nothing}
    tabindex=${tabindex ?? nothing}
    aria-pressed=${pressed ?? nothing}
    aria-expanded=${expanded ?? nothing}
    ?disabled=${disabled}
    @click=${onClick}
  >
    ${icon(name)}
  </button>
`;

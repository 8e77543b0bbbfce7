// @ts-check
import { html, nothing } from "./vendor/lit-html/lit-html.js";
import { repeat } from "./vendor/lit-html/directives/repeat.js";
import { fetchFromHere } from "./http.js";
import { icon, iconButton } from "./icons.js";
import { removeBidiControls } from "./words.js";
import { sentence } from "./chat/protocol.js";
import { TEXTS } from "./texts.js";

/** A file in a conversation's folder. `path` is URL-encoded; `times` says how often it was written. @typedef {{chat: string, path: string, name: string, size?: number | null, times?: number}} Kept */

/** Renders files with buttons to open, save and delete them. @param {Kept[]} files */
export const filesView = (files) => html`
  <ul class="files" translate="no" aria-label=${TEXTS.files.title}>
    ${repeat(files, ({ path, times = 1 }) => `${path} ${times}`, ({ chat, path, name, size }) => {
      const href = `chats/${encodeURIComponent(chat)}/files/${path}`;
      const save = removeBidiControls(TEXTS.files.save(name));
      return html`<li @click=${(/** @type {Event} */ event) => onFileClick(href, name, event)}>
        <a href=${href} target="_blank" rel="noopener" dir="auto">${name}</a>
        ${size == null ? nothing : html`<span>${TEXTS.files.size(size)}</span>`}
        <a class="icon-button" href=${href} download=${removeBidiControls(name.split("/").at(-1) ?? "")} aria-label=${save} title=${save}>${icon("down")}</a>
        ${iconButton("remove", TEXTS.files.remove(name), () => {})}
      </li>`;
    })}
  </ul>
`;

/** Deletes the file, or shows why it cannot be opened; it may have been deleted before. @param {string} href @param {string} name @param {Event} event in its row */
async function onFileClick(href, name, { target, currentTarget }) {
  const pressed = /** @type {HTMLElement} */ (target);
  const deletes = pressed.closest("button");
  if (deletes ? !confirm(removeBidiControls(TEXTS.files.ask(name))) : !pressed.closest("a")) return;
  const response = await fetchFromHere(href, deletes ? { method: "DELETE" } : {}).catch(() => null);
  const gone = response?.status === 404;
  /** @type {HTMLElement} */ (currentTarget).hidden = Boolean(gone || (deletes && response?.ok));
  if (response?.ok) void response.body?.cancel();
  else if (!deletes || !gone) alert(response ? await sentence(response) : TEXTS.talk.lost);
}

// @ts-check
import { sentence } from "./chat/protocol.js";
import { storage } from "./chat/storage.js";
import { fetchFromHere } from "./http.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";

const MESSAGES = TEXTS.profile;
const KEPT = "todo.zone-kept"; // the zone of this device for which the user has said to keep the stored one

/** What `GET /profile` responds. @typedef {{name: string, time_zone: string | null}} Profile */

/** @typedef {{say: (text: string) => void, unauthorized: () => void, changed: (profile: Profile) => void, saved: () => void}} Page */

/** @typedef {{profile?: Profile, status?: string, problem?: string}} State */

/** Returns the zone of this device as the server knows it; null if the browser cannot find it. */
const deviceZone = () => window.early.headersOf(null).get("X-Time-Zone");

/** @param {RequestInit} [change] @returns {Promise<Response | null>} null if the server cannot be reached */
const request = (change) => fetchFromHere("profile", { cache: "no-store", ...change }).catch(() => null);

/** @param {Partial<Profile>} fields @returns {RequestInit} */
const patch = (fields) => ({ method: "PATCH", headers: { "Content-Type": "application/json" }, body: JSON.stringify(fields) });

/**
 * Reads the profile, and asks once for each zone of this device whether to use it, if another one is stored. Returns what
 * removes the question.
 * @param {Page} page @returns {Promise<() => void>}
 */
export async function followProfile(page) {
  const response = await request();
  if (!response?.ok) return () => {};
  /** @type {Profile} */
  const profile = await response.json();
  page.changed(profile);
  const device = deviceZone();
  const stored = profile.time_zone;
  if (!device || !stored || isSameZone(device, stored) || storage.get(KEPT) === device) return () => {};
  return askForZone(device, stored, page);
}

/** @param {string} device @param {string} stored @param {Page} page @returns {() => void} */
function askForZone(device, stored, page) {
  const question = Object.assign(document.createElement("section"), { className: "zone-question" });
  question.setAttribute("aria-label", MESSAGES.zone);
  const remove = () => question.remove();
  const keep = () => {
    storage.set(KEPT, device);
    remove();
  };
  const use = async () => {
    const response = await request(patch({ time_zone: device }));
    if (!question.isConnected) return; // they have signed out meanwhile
    if (response?.status === 401) return page.unauthorized();
    if (!response?.ok) return page.say(response ? await sentence(response) : TEXTS.unreachable);
    storage.set(KEPT, null);
    remove();
    page.changed(await response.json());
    page.say(MESSAGES.nowIn(device));
  };
  document.body.append(question);
  const text = html`<p role="status" translate="no">${MESSAGES.differs(device, stored)}</p>`;
  render(
    html`${text}
      <button type="button" class="button" @click=${use}>${MESSAGES.use(device)}</button>
      <button type="button" class="button" @click=${keep}>${MESSAGES.keep(stored)}</button>`,
    question,
  );
  return remove;
}

/** Whether two names are of one zone, which may have several. @param {string} one @param {string} other */
function isSameZone(one, other) {
  try {
    const [first, second] = [one, other].map((timeZone) => new Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone);
    return first === second;
  } catch {
    return one === other; // the browser does not know the stored one
  }
}

/** Shows the dialog in which users change their name and time zone. @param {Page} page */
export async function showProfile({ unauthorized, changed, saved }) {
  const dialog = document.createElement("dialog");
  dialog.className = "sheet profile";
  dialog.setAttribute("aria-labelledby", "profile-title");
  dialog.addEventListener("close", () => dialog.remove());
  /** @type {State} */
  let state = {};
  /** @param {State} now */
  const draw = (now) => {
    state = { profile: state.profile, ...now };
    render(content(state, save), dialog);
  };
  /** @param {RequestInit} [change] */
  const ask = async (change) => {
    const response = await request(change);
    if (response?.status === 401) return unauthorized();
    if (!response?.ok) return draw({ problem: response ? await sentence(response) : TEXTS.unreachable });
    const profile = await response.json();
    changed(profile);
    if (change) saved();
    draw({ profile, status: change ? MESSAGES.saved : "" });
  };
  /** @param {SubmitEvent} event */
  const save = (event) => {
    if (event.submitter?.hasAttribute("formmethod")) return; // the button that closes the dialog
    event.preventDefault();
    const values = new FormData(/** @type {HTMLFormElement} */ (event.target));
    const [name, zone] = ["name", "zone"].map((field) => String(values.get(field)).trim());
    const isNewZone = zone !== (state.profile?.time_zone ?? "");
    draw({});
    void ask(patch({ name, ...(isNewZone && { time_zone: zone }) }));
  };
  draw({});
  document.body.append(dialog);
  dialog.showModal();
  await ask();
}

/** @param {State} state @param {(event: SubmitEvent) => void} save */
const content = ({ profile, status, problem }, save) => html`
  <h2 id="profile-title" tabindex="-1" autofocus>${MESSAGES.title}</h2>
  <form @submit=${save}>
    <label for="profile-name">${MESSAGES.name}</label>
    <input id="profile-name" name="name" maxlength="100" dir="auto" autocomplete="name" ?disabled=${!profile} .value=${profile?.name ?? ""} />
    <label for="profile-zone">${MESSAGES.zone}</label>
    <input id="profile-zone" name="zone" list="profile-zones" autocomplete="off" spellcheck="false" aria-describedby="profile-about" ?disabled=${!profile} .value=${profile?.time_zone ?? ""} />
    <datalist id="profile-zones">${Intl.supportedValuesOf("timeZone").map((zone) => html`<option value=${zone}></option>`)}</datalist>
    <p id="profile-about" class="quiet">${MESSAGES.about(deviceZone())}</p>
    <p class="quiet" role="status" translate="no">${status ?? ""}</p>
    ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing}
    <div class="buttons">
      <button type="submit" class="button primary" ?disabled=${!profile}>${TEXTS.save}</button>
      <button type="submit" class="button" formmethod="dialog" formnovalidate>${TEXTS.close}</button>
    </div>
  </form>
`;

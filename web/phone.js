// @ts-check
import { timeWords } from "./chat/days.js";
import { sentence } from "./chat/protocol.js";
import { fetchFromHere } from "./http.js";
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";

const MESSAGES = TEXTS.phone;

/** What `POST /links` responds. @typedef {{address: string, expires: string, qr_code: {size: number, path: string}}} Link */

/** @typedef {{link: Link | null, status?: string, problem?: string}} State */

/** Shows the dialog with a link for the user's phone. @param {() => void} unauthorized */
export async function showPhone(unauthorized) {
  const dialog = document.createElement("dialog");
  dialog.className = "sheet phone";
  dialog.setAttribute("aria-labelledby", "phone-title");
  dialog.addEventListener("close", () => dialog.remove()); // the dialog contains the code
  /** @param {State} state */
  const draw = (state) => render(content(state, { make, copy: () => copy(state) }), dialog);
  /** @param {State} state */
  const copy = async (state) => {
    try {
      await navigator.clipboard.writeText(state.link?.address ?? "");
      draw({ ...state, status: TEXTS.copied, problem: undefined });
    } catch {
      draw({ ...state, problem: MESSAGES.notCopied });
    }
  };
  const make = async () => {
    draw({ link: null, status: MESSAGES.making });
    const response = await fetchFromHere("links", { method: "POST" }).catch(() => null);
    if (!response) return draw({ link: null, problem: TEXTS.unreachable });
    if (response.status === 401) return unauthorized();
    if (!response.ok) return draw({ link: null, problem: await sentence(response) });
    const link = await response.json();
    draw({ link, status: MESSAGES.until(timeWords(new Date(link.expires))) });
    dialog.querySelector("h2")?.focus(); // the clicked button is gone
  };
  draw({ link: null });
  document.body.append(dialog);
  dialog.showModal();
  await make();
}

/** @param {State} state @param {{make: () => void, copy: () => void}} can */
const content = ({ link, status, problem }, { make, copy }) => html`
  <h2 id="phone-title" tabindex="-1" autofocus>${MESSAGES.title}</h2>
  ${link ? shown(link, copy) : nothing}
  <p class="quiet" role="status" translate="no">${status ?? ""}</p>
  ${problem ? html`<p class="problem" role="alert">${problem}</p>` : nothing} ${link ? way(link) : nothing}
  <form method="dialog">
    ${link || problem ? html`<button type="button" class="button" @click=${make}>${link ? MESSAGES.another : TEXTS.tryAgain}</button>` : nothing}
    <button type="submit" class="button">${TEXTS.close}</button>
  </form>
`;

/** @param {Link} link @param {() => void} copy */
const shown = ({ address, qr_code: { size, path } }, copy) => html`
  <p>${MESSAGES.scan}</p>
  <svg viewBox="0 0 ${size} ${size}" role="img" aria-label=${MESSAGES.qrCode}><path d=${path} /></svg>
  <label for="phone-address">${MESSAGES.address}</label>
  <input id="phone-address" readonly .value=${address} @focus=${select} />
  ${navigator.clipboard // needs https or localhost
    ? html`<button type="button" class="button primary" @click=${copy}>${TEXTS.copy}</button>`
    : nothing}
`;

/** Tells what works on the phone at this address. @param {Link} link */
const way = ({ address }) =>
  address.startsWith("https:")
    ? html`<p>${MESSAGES.overHttps}</p>`
    : html`
        <p>${MESSAGES.overHttp}</p>
        <ul>
          ${MESSAGES.withoutHttps.map((what) => html`<li>${what}</li>`)}
        </ul>
        <p>${MESSAGES.how}</p>
      `;

/** @param {FocusEvent} event */
const select = ({ target }) => target instanceof HTMLInputElement && target.select();

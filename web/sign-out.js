// @ts-check
import { TEXTS } from "./texts.js";
import { html, nothing, render } from "./vendor/lit-html/lit-html.js";
/** @import {Unsaved} from "./unsaved.js" */

const MESSAGES = TEXTS.signOutDialog;
const LOOK = 250; // ms
const GIVE_UP = 15_000; // ms without progress

/** What is not saved, by the prefix of its keys; `sent`: it is sent without further questions. @type {{prefix: string, name: [one: string, many: string], sent: boolean}[]} */
const KINDS = [
  { prefix: "change/", name: ["a change", "changes"], sent: true },
  { prefix: "message/", name: ["a message", "messages"], sent: true },
  { prefix: "change/", name: ["an earlier change", "earlier changes"], sent: false },
  { prefix: "message/", name: ["an earlier message", "earlier messages"], sent: false },
  { prefix: "edit/", name: ["an edited task", "edited tasks"], sent: false },
  { prefix: "edit-message/", name: ["an edited message", "edited messages"], sent: false },
  { prefix: "file/", name: ["a file", "files"], sent: false },
  { prefix: "", name: ["a draft", "drafts"], sent: false },
];

/** What the user chose. @typedef {"leave" | "discard" | "cancel"} Choice */

/**
 * Asks before a sign-out what is to become of what is not saved. It resolves at once if there is nothing.
 * @param {Unsaved} unsaved
 * @param {() => unknown} send sends what can be sent
 * @returns {Promise<Choice>}
 */
export async function askBeforeSignOut(unsaved, send) {
  const counts = await countUnsaved(unsaved);
  return counts.size === 0 ? "leave" : new SignOutDialog(unsaved, send).open(counts);
}

class SignOutDialog {
  #dialog = document.createElement("dialog");
  #sending = false;
  #problem = "";
  /** @type {Map<typeof KINDS[number], number>} */
  #counts = new Map();
  /** @type {(choice: Choice) => void} */
  #resolve = () => {};
  #unsaved;
  #send;

  /** @param {Unsaved} unsaved @param {() => unknown} send */
  constructor(unsaved, send) {
    this.#unsaved = unsaved;
    this.#send = send;
    this.#dialog.className = "sheet sign-out";
    this.#dialog.setAttribute("aria-labelledby", "sign-out-title");
    this.#dialog.addEventListener("close", () => this.#close("cancel"));
  }

  /** @param {Map<typeof KINDS[number], number>} counts @returns {Promise<Choice>} */
  open(counts) {
    this.#counts = counts;
    this.#draw();
    document.body.append(this.#dialog);
    this.#dialog.showModal();
    return new Promise((resolve) => (this.#resolve = resolve));
  }

  /** @param {Choice} choice */
  #close(choice) {
    this.#sending = false;
    this.#resolve(choice);
    this.#dialog.remove();
  }

  /** Sends, waits until everything is acknowledged, and signs out; says why if that fails. */
  async #sendAll() {
    const others = rest(this.#counts);
    [this.#sending, this.#problem] = [true, ""];
    this.#draw();
    await this.#send();
    let least = Infinity;
    for (let until = Date.now() + GIVE_UP; this.#sending && Date.now() < until; ) {
      await new Promise((resolve) => setTimeout(resolve, LOOK));
      this.#counts = await countUnsaved(this.#unsaved);
      const open = total(this.#counts, true);
      const rejected = rest(this.#counts) > others || this.#hasEdits;
      if (open === 0) return rejected ? this.#stop(MESSAGES.rejected) : this.#close("leave");
      if (open < least) until = Date.now() + GIVE_UP;
      least = Math.min(open, least);
      this.#draw();
    }
    if (this.#sending) this.#stop(MESSAGES.unreachable);
  }

  /** Whether this tab has edited tasks that can be saved without asking. */
  get #hasEdits() {
    return this.#unsaved.rows("edit/").some((row) => this.#unsaved.isOfSession(row));
  }

  /** @param {string} problem */
  #stop(problem) {
    [this.#sending, this.#problem] = [false, problem];
    this.#draw();
  }

  #draw() {
    const canSend = total(this.#counts, true) > 0 || this.#hasEdits;
    const sending = this.#sending;
    render(
      html`
        <h2 id="sign-out-title">${MESSAGES.title}</h2>
        <p role="status">${sentenceOf(this.#counts)}</p>
        ${rest(this.#counts) > 0 ? html`<p class="quiet">${MESSAGES.kept}</p>` : nothing}
        ${this.#problem ? html`<p class="problem" role="alert">${this.#problem}</p>` : nothing}
        <div class="row">
          <button type="button" class="button" @click=${() => this.#close("cancel")}>${TEXTS.cancel}</button>
          <button type="button" class="button" @click=${() => this.#close("discard")}>${MESSAGES.discard}</button>
          ${canSend
            ? html`<button type="button" class="button primary" ?disabled=${sending} @click=${() => this.#sendAll()}>${sending ? MESSAGES.sending : MESSAGES.send}</button>`
            : html`<button type="button" class="button primary" @click=${() => this.#close("leave")}>${TEXTS.signOut}</button>`}
        </div>
      `,
      this.#dialog,
    );
  }
}

/** Counts what is not saved, of each kind. @param {Unsaved} unsaved @returns {Promise<Map<typeof KINDS[number], number>>} */
async function countUnsaved(unsaved) {
  const counts = new Map();
  for (const row of await unsaved.all()) {
    const kind = KINDS.find(({ prefix, sent }) => row.key.startsWith(prefix) && (!sent || unsaved.isOfSession(row)));
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}

/** @param {Map<typeof KINDS[number], number>} counts @param {boolean} sent */
const total = (counts, sent) => [...counts].reduce((sum, [kind, count]) => sum + (kind.sent === sent ? count : 0), 0);

/** How many cannot be sent. @param {Map<typeof KINDS[number], number>} counts */
const rest = (counts) => total(counts, false);

/** Says what is not saved, like "2 changes and a message are not saved yet." @param {Map<typeof KINDS[number], number>} counts */
function sentenceOf(counts) {
  const parts = KINDS.flatMap((kind) => {
    const count = counts.get(kind) ?? 0;
    return count === 0 ? [] : [count === 1 ? kind.name[0] : `${count} ${kind.name[1]}`];
  });
  const are = parts.length > 1 || total(counts, true) + rest(counts) > 1;
  return MESSAGES.unsaved(parts, are);
}

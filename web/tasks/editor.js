// @ts-check
import { LIST } from "../texts.js";
import { Editing } from "./editing.js";
import { Preview } from "./draft.js";
/** @import {StoredEdit} from "./editing.js" */
/** @import {TodoTasks} from "./element.js" */
/** @import {Task} from "./types" */
/** @import {Ui} from "./ui.js" */

const SMALL = matchMedia("(max-width: 43.74em)"); // as in tasks.css

/** Opens tasks for editing, one at a time, and saves or discards what is typed. */
export class Editor {
  /** What is typed in the open task. @type {Editing | null} */
  editing = null;
  #ui;
  #element;

  /** @param {Ui} ui @param {TodoTasks} element */
  constructor(ui, element) {
    this.#ui = ui;
    this.#element = element;
  }

  /** The edited task, if it is shown in a sheet. */
  get sheet() {
    return SMALL.matches ? this.editing : null;
  }

  /** Opens what was typed before a reload. */
  restore() {
    this.editing = Editing.stored(this.#ui.unsaved);
  }

  /** Reads again what is stored, which another tab may have discarded or left here; returns whether another task is open now. */
  reread() {
    const { editing } = this;
    const { unsaved } = this.#ui;
    if (editing?.changed && !Editing.has(editing.task.id, unsaved)) this.editing = null;
    if (!this.#ui.navigation.going) this.editing ??= Editing.stored(unsaved); // else the user has asked for another task
    return this.editing !== null && this.editing !== editing;
  }

  /** Shows the restored task; the focus stays in the field in which the user types meanwhile. @param {() => boolean} [isLast] of the navigation that shows it */
  showRestored(isLast) {
    if (this.editing) void this.#ui.navigation.show(this.editing.task.id, isLast);
    void this.compare();
  }

  /** Loads the edited task and compares it with what is typed. */
  async compare() {
    const { editing } = this;
    const { changed, pages, pending, reader } = this.#ui;
    if (!editing || editing.task.id < 0) return changed();
    const { id } = editing.task;
    const loaded = pages.tasks.find((task) => task.id === id) ?? (await reader.task(id).catch(() => null));
    if (!loaded || this.editing !== editing) return;
    editing.compare(pending.apply(loaded), this.#element.focusedInput);
    changed();
  }

  /** Handles a click on a title: edits or selects the task. @param {Task} task @param {MouseEvent} event */
  clicked(task, { shiftKey, ctrlKey, metaKey }) {
    const { selection } = this.#ui;
    if (selection.active || shiftKey || ctrlKey || metaKey) void selection.pick(task, shiftKey);
    else this.edit(task);
  }

  /** @param {Task} task @param {() => boolean} [isLast] of the navigation that opens it */
  edit(task, isLast) {
    if (task.id === this.editing?.task.id) this.#element.focusOn(task.id, "title");
    else if (task.status !== "deleted") void this.#open(Editing.of(task, this.#ui.unsaved), isLast);
  }

  /** Saves the task that is edited first; if that fails, it stays open and says why. @param {Editing} editing @param {() => boolean} [isLast] */
  async #open(editing, isLast = this.#ui.navigation.begin()) {
    const ui = this.#ui;
    const { id } = editing.task;
    if (!ui.controls) await ui.loadControls();
    const ended = !this.editing || (await this.endFirst());
    if (!isLast()) return;
    if (this.editing && !ended) return void ui.navigation.show(this.editing.task.id);
    ui.actions.leaving.delete(id);
    editing.view = ui.task(id) ? ui.view : null;
    this.editing = editing;
    ui.current = id;
    this.#element.offerFocus(id, "title");
    if (editing.view === null) await ui.navigation.show(id, isLast);
    if (this.editing !== editing) return; // it has ended meanwhile
    editing.view ??= ui.view;
    editing.store();
    void this.compare();
    if (ui.agents && id > 0) void this.#lookForFiles(editing).catch(() => {}); // the files are optional
  }

  /** Saves the edited task before another one is opened; returns whether it could. What was typed before the user signed in stays a draft. */
  async endFirst() {
    const { editing } = this;
    if (editing?.isEarlier) this.#keepDraft(editing);
    else if (editing?.unreadRepeat) await this.#readRepeat(editing);
    if (editing && editing === this.editing && !editing.unreadRepeat) void this.end(true); // else another one is open, or typed in
    return !this.editing;
  }

  /** Closes the editor and keeps what is typed, which the user can open again. @param {Editing} editing */
  #keepDraft(editing) {
    editing.view = null;
    editing.store();
    this.editing = null;
    this.#ui.actions.offer(LIST.keptDraft(editing.task.title), { text: LIST.editAgain, act: () => this.#open(editing) });
  }

  /** Loads the files that agents wrote for the task. @param {Editing} editing */
  async #lookForFiles(editing) {
    const { files } = await this.#ui.api.files(editing.task.id);
    if (files.length === 0) return;
    const { filesView } = await import("../files.js");
    const written = files.map(({ chat_id: chat, path, size }) => ({ chat, path: path.split("/").map(encodeURIComponent).join("/"), name: path, size }));
    editing.files = filesView(written);
    this.#ui.changed();
  }

  /** Ends editing and saves or discards the changes. Who types on while the server reads the repeat goes on editing. @param {boolean} keep */
  async end(keep) {
    const { editing } = this;
    const { actions } = this.#ui;
    if (keep && editing?.unreadRepeat) await this.#readRepeat(editing);
    if (editing !== this.editing || (keep && editing?.unreadRepeat)) return;
    const changes = keep ? editing?.changes() : null;
    if (!editing || (keep && !changes)) return this.#element.revealProblem();
    const edit = editing.toStored();
    const { deleted } = editing;
    const saved = changes && (deleted || Object.keys(changes.fields).length > 0) ? actions.save(edit, changes.fields, changes.as, deleted) : null;
    this.editing = null;
    editing.forget(); // the change is stored
    const typesElsewhere = this.#element.typing && this.#element.focusedInput === undefined;
    if (typesElsewhere) this.#element.draw();
    else this.#element.focusOn(editing.task.id, "open");
    if (!keep && editing.changed) actions.offer(LIST.was.discarded(editing.task.title), { text: LIST.undo, act: () => this.#open(editing) });
    await saved;
  }

  /** Shows what was typed and is rejected: at once, or by a button if the user types elsewhere. @param {StoredEdit} edit @param {string} problem */
  editAgain(edit, problem) {
    const { actions, unsaved } = this.#ui;
    const open = this.editing?.task.id === edit.task.id ? this.editing : null;
    const editing = open ?? Editing.restore({ ...edit, view: null }, unsaved);
    if (open) open.fill(edit);
    editing.problem = { text: problem };
    editing.store();
    if (open) return this.#element.revealProblem();
    if (this.editing || this.#element.typing) return actions.offer(problem, { text: LIST.editAgain, act: () => this.#open(editing) }, true);
    void this.#open(editing).then(() => this.#element.revealProblem());
    actions.dismiss();
  }

  /** Lets the server read the repeat. @param {Editing} editing */
  async #readRepeat(editing) {
    const { api, changed, clock } = this.#ui;
    const text = editing.unreadRepeat;
    editing.readRepeat(text, await new Preview(api, "date", changed).read(text, clock.now));
  }

  /** Saves the edited task and lets an agent work on it. */
  async delegate() {
    const id = this.editing?.task.id;
    await this.end(true);
    if (id !== undefined && !this.editing) this.#element.emit("todo-delegate", { id });
  }

  /** Forgets what is typed for tasks that are deleted. @param {Task[]} tasks */
  forget(tasks) {
    if (tasks.some(({ id }) => id === this.editing?.task.id)) {
      this.editing = null;
      this.#ui.changed();
    }
    for (const { id } of tasks) this.#ui.unsaved.delete(`edit/${id}`);
  }
}

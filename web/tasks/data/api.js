// @ts-check
import { ConnectionLost, HttpError, sentence } from "../../chat/protocol.js";
/** @import {Changed, Changes, Fields, Filter, Moment, Task, TaskPage, TaskPreview, View} from "../types" */

const PAGE = 100; // tasks: as many as the server gives at once

/** A wish that may be sent again: its key makes the server do it once. @typedef {{method: string, path: string, body?: object, key: string}} Wish */

/** The requests of the list, to the backend's door for tasks. */
export class Api {
  /** @param {typeof fetch} [send] */
  constructor(send = (input, init) => fetch(input, init)) {
    this.fetch = send;
  }

  /** @param {View} view @param {Filter} filter @param {string | null} cursor @returns {Promise<TaskPage>} */
  page(view, filter, cursor) {
    const asked = { view, ...filter, cursor: cursor ?? "", limit: String(PAGE) };
    return this.#ask(`/tasks?${new URLSearchParams(Object.entries(asked).filter(([, value]) => value))}`);
  }

  /** @param {number} id @returns {Promise<Task>} */
  task(id) {
    return this.#ask(`/tasks/${id}`);
  }

  /** What agents wrote for it. @param {number} id @returns {Promise<{files: {chat_id: string, path: string, size: number | null}[]}>} */
  files(id) {
    return this.#ask(`/tasks/${id}/files`);
  }

  /** What is understood of a text. @param {string} text @param {"task" | "date"} mode @param {Moment} now @param {boolean} dates @returns {Promise<TaskPreview>} */
  preview(text, mode, now, dates) {
    return this.#ask(`/tasks/preview?${new URLSearchParams({ text, mode, written: `${now.day}T${now.time}`, dates: String(dates) })}`);
  }

  /** @param {number} after @returns {Promise<Changes>} */
  changes(after) {
    return this.#ask(`/tasks/changes?after=${after}`);
  }

  /** @param {Wish} wish @returns {Promise<Changed>} */
  change({ method, path, body, key }) {
    const headers = { "Idempotency-Key": key, ...(body && { "Content-Type": "application/json" }) };
    return this.#ask(path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  }

  /** @param {string} path @param {RequestInit} [init] */
  async #ask(path, init) {
    const response = await this.fetch(path, { cache: "no-store", ...init }).catch(() => {
      throw new ConnectionLost();
    });
    if (response.status >= 502 && response.status <= 504) throw new ConnectionLost();
    if (!response.ok) throw new HttpError(response.status, await sentence(response));
    return response.json().catch(() => {
      throw new ConnectionLost();
    });
  }
}

/** @param {object} fields of a new task, or its text */
export const adding = (fields) => ({ method: "POST", path: "/tasks", body: fields });

/** @param {number[]} ids @param {Fields} fields */
export const changing = ([id, ...also], fields) => ({
  method: "PATCH",
  path: `/tasks/${id}`,
  body: { ...fields, ...(also.length > 0 && { also }) },
});

/** @param {number[]} ids */
export const deleting = ([id, ...also]) => ({
  method: "DELETE",
  path: `/tasks/${id}${also.length > 0 ? `?also=${also}` : ""}`,
});

/** @param {string} batch */
export const undoing = (batch) => ({ method: "POST", path: "/tasks/undo", body: { batch } });

/** Browsers give `randomUUID` to https and localhost only. */
export const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

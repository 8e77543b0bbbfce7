// @ts-check
import { ConnectionLost, HttpError, sentence } from "../../chat/protocol.js";
/** @import {Changed, Changes, Fields, Filter, Moment, Task, TaskPage, TaskPreview, View} from "../types" */

const PAGE = 100; // tasks, the server's maximum

/** A change that may be sent again: its key makes the server do it once. @typedef {{method: string, path: string, body?: object, key: string}} Change */

/** The requests of the list to `/tasks`. */
export class Api {
  /** @param {typeof fetch} [send] */
  constructor(send = (input, init) => fetch(input, init)) {
    this.fetch = send;
  }

  /** @param {View} view @param {Filter} filter @param {string | null} cursor @returns {Promise<TaskPage>} */
  page(view, filter, cursor) {
    const params = { view, ...filter, cursor: cursor ?? "", limit: String(PAGE) };
    return this.#request(`/tasks?${new URLSearchParams(Object.entries(params).filter(([, value]) => value))}`);
  }

  /** @param {number} id @returns {Promise<Task>} */
  task(id) {
    return this.#request(`/tasks/${id}`);
  }

  /** Loads the files that agents wrote for the task. @param {number} id @returns {Promise<{files: {chat_id: string, path: string, size: number | null}[]}>} */
  files(id) {
    return this.#request(`/tasks/${id}/files`);
  }

  /** Returns what the server understands of a text. @param {string} text @param {"task" | "date"} mode @param {Moment} now @param {boolean} dates @returns {Promise<TaskPreview>} */
  preview(text, mode, now, dates) {
    return this.#request(`/tasks/preview?${new URLSearchParams({ text, mode, written: `${now.day}T${now.time}`, dates: String(dates) })}`);
  }

  /** @param {number} after @returns {Promise<Changes>} */
  changes(after) {
    return this.#request(`/tasks/changes?after=${after}`);
  }

  /** @param {Change} change @returns {Promise<Changed>} */
  change({ method, path, body, key }) {
    const headers = { "Idempotency-Key": key, ...(body && { "Content-Type": "application/json" }) };
    return this.#request(path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  }

  /** @param {string} path @param {RequestInit} [init] */
  async #request(path, init) {
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
export const addRequest = (fields) => ({ method: "POST", path: "/tasks", body: fields });

/** @param {number[]} ids @param {Fields} fields */
export const changeRequest = ([id, ...also], fields) => ({
  method: "PATCH",
  path: `/tasks/${id}`,
  body: { ...fields, ...(also.length > 0 && { also }) },
});

/** @param {number[]} ids */
export const deleteRequest = ([id, ...also]) => ({
  method: "DELETE",
  path: `/tasks/${id}${also.length > 0 ? `?also=${also}` : ""}`,
});

/** @param {string} batch */
export const undoRequest = (batch) => ({ method: "POST", path: "/tasks/undo", body: { batch } });

/** `randomUUID` needs https or localhost. */
export const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

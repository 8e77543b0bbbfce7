// @ts-check
import { HttpError, read, request } from "../../chat/protocol.js";
import { LIST } from "../../texts.js";
import { lengthOf } from "../../words.js";
/** @import {Settings} from "../../alerts/types" */
/** @import {Batch, Changed, Changes, Fields, Filter, Moment, Sort, Task, TaskPage, TaskPreview, View} from "../types" */

const MAX_QUERY_LENGTH = 200;
export const MAX_QUERY_WORDS = 20;
const BATCHES = 60; // of 20 changes, their undos and their redos

/**
 * A request that changes tasks, as it is stored: what is done to which tasks, and never an address. Its key makes the server
 * do it once.
 * @typedef {{operation: string, ids?: number[], fields?: Record<string, unknown>, batch?: string, key: string}} ChangeRequest
 */
/** A request without its key. @typedef {Omit<ChangeRequest, "key">} Operation */

/** The requests of the list. */
export class Api {
  /** @param {typeof fetch} send */
  constructor(send) {
    this.fetch = send;
  }

  /** @param {View} view @param {Filter} filter @param {Sort} sort @param {number} offset @param {number} limit @param {AbortSignal} signal @returns {Promise<TaskPage>} */
  async page(view, filter, sort, offset, limit, signal) {
    const { query } = filter;
    if (lengthOf(query) > MAX_QUERY_LENGTH || query.split(/\s+/).length > MAX_QUERY_WORDS) throw new HttpError(400, LIST.searchTooLong);
    const params = { view, ...filter, sort, offset: offset ? String(offset) : "", limit: String(limit) };
    return this.#request(`tasks?${new URLSearchParams(Object.entries(params).filter(([, value]) => value))}`, { signal });
  }

  /** @param {number} id @returns {Promise<Task>} */
  task(id) {
    return this.#request(`tasks/${id}`);
  }

  /** Loads the files that agents wrote for the task. @param {number} id @returns {Promise<{files: {chat_id: string, path: string, size: number | null}[]}>} */
  files(id) {
    return this.#request(`tasks/${id}/files`);
  }

  /** Returns what the server understands of a text. @param {string} text @param {"task" | "date"} mode @param {Moment} now @param {boolean} dates @returns {Promise<TaskPreview>} */
  preview(text, mode, now, dates) {
    return this.#request(`tasks/preview?${new URLSearchParams({ text, mode, written: `${now.day}T${now.time}`, dates: String(dates) })}`);
  }

  /** Loads how many open tasks each label has, the most used first. @returns {Promise<{label: string, count: number}[]>} */
  async labels() {
    return (await this.#request("tasks/counts")).labels;
  }

  /** Loads whether notifications are on, and their channels. @returns {Promise<Settings>} */
  alertSettings() {
    return this.#request("alerts/settings");
  }

  /** Loads the last batches of changes, the newest first. @returns {Promise<Batch[]>} */
  async batches() {
    return (await this.#request(`tasks/batches?limit=${BATCHES}`)).batches;
  }

  /** @param {number} after @returns {Promise<Changes>} */
  changes(after) {
    return this.#request(`tasks/changes?after=${after}`);
  }

  /** @param {ChangeRequest} request @returns {Promise<Changed>} */
  change({ operation, ids: [id, ...also] = [], fields, batch, key }) {
    const [method, path] = OPERATIONS.get(operation) ?? [];
    if (!method) throw new TypeError(`unknown operation ${operation}`);
    const body = batch === undefined ? fields : { batch };
    const inQuery = method === "DELETE" && also.length > 0;
    const address = `${id === undefined ? path : `${path}/${id}`}${inQuery ? `?also=${also}` : ""}`;
    const sent = also.length > 0 && !inQuery ? { ...body, also } : body;
    const headers = { "Idempotency-Key": key, ...(sent && { "Content-Type": "application/json" }) };
    return this.#request(address, { method, headers, ...(sent && { body: JSON.stringify(sent) }) });
  }

  /** @param {string} path @param {RequestInit} [init] */
  async #request(path, init) {
    return read(await request(this.fetch, path, { cache: "no-store", ...init }));
  }
}

/** The method and path of each operation. @type {ReadonlyMap<string, [method: string, path: string]>} */
const OPERATIONS = new Map([
  ["add", ["POST", "tasks"]],
  ["change", ["PATCH", "tasks"]],
  ["delete", ["DELETE", "tasks"]],
  ["undo", ["POST", "tasks/undo"]],
  ["move-overdue", ["POST", "tasks/move-overdue"]],
]);

/** @param {object} fields of a new task, or its text @returns {Operation} */
export const addRequest = (fields) => ({ operation: "add", fields: { ...fields } });

/** @param {number[]} ids @param {Fields} fields @returns {Operation} */
export const changeRequest = (ids, fields) => ({ operation: "change", ids, fields: { ...fields } });

/** @param {number[]} ids @returns {Operation} */
export const deleteRequest = (ids) => ({ operation: "delete", ids });

/** @param {string} batch @returns {Operation} */
export const undoRequest = (batch) => ({ operation: "undo", batch });

/** @returns {Operation} */
export const moveOverdueRequest = () => ({ operation: "move-overdue" });

/** @param {any} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
/** @param {any} value */
const areIds = (value) => Array.isArray(value) && value.length > 0 && value.every(Number.isSafeInteger);

/** Whether a stored request is one that the list makes. @param {any} request */
export function isRequest(request) {
  if (!isObject(request) || !/^[\w-]{1,255}$/.test(request.key)) return false;
  const { operation, ids, fields, batch } = request;
  const has = { add: isObject(fields), change: areIds(ids) && isObject(fields), delete: areIds(ids), undo: typeof batch === "string", "move-overdue": true };
  const allowed = { add: ["fields"], change: ["ids", "fields"], delete: ["ids"], undo: ["batch"], "move-overdue": [] };
  if (!Object.hasOwn(has, operation)) return false;
  const name = /** @type {keyof typeof has} */ (operation);
  return has[name] && Object.keys(request).every((key) => ["operation", "key", ...allowed[name]].includes(key));
}

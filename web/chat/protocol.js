// @ts-check
import { TEXTS } from "../texts.js";
import { SlowRequests } from "./slow-requests.js";
/** @import {ThreadEvent} from "./types" */

const PAUSE_AFTER = 10; // ms

/** The server rejected a request; the message is the server's sentence. */
export class HttpError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.name = "HttpError";
    this.status = status;
  }
}

/** No complete response: it is unknown what the server has done. */
export class ConnectionLost extends Error {
  constructor() {
    super(TEXTS.talk.lost);
    this.name = "ConnectionLost";
  }
}

/** Returns the path of a conversation in the run API. @param {string} threadId */
export const chatPath = (threadId) => `/chats/${encodeURIComponent(threadId)}`;

/** @param {string} threadId @param {string} interaction */
export const interactionPath = (threadId, interaction) => `${chatPath(threadId)}/interactions/${encodeURIComponent(interaction)}`;

/** Sends requests of ChatKit, which are POSTs to one address, and of other APIs. */
export class Api {
  #clockDifference = 0;

  /**
   * @param {{url: string, fetch?: typeof fetch}} options
   * @param {(isNews: boolean) => void} [slow] called when a request becomes slow, the first time with true, and when it is answered
   */
  constructor({ url, fetch: send = (input, init) => fetch(input, init) }, slow = () => {}) {
    this.slowRequests = new SlowRequests(slow);
    this.url = new URL(url, location.href);
    this.fetch = send;
  }

  /** The server's time in ms, from its responses. */
  now() {
    return Date.now() + this.#clockDifference;
  }

  /**
   * Returns the JSON response of a request that does not stream.
   * @param {string} type
   * @param {Record<string, unknown>} params
   * @param {object} [metadata] values that the protocol does not define
   */
  async ask(type, params, metadata) {
    return read(await this.#post(type, params, undefined, metadata));
  }

  /**
   * Yields the events of a streaming request. Leaving the stream does not end the run; `cancel` does.
   * @param {string} type
   * @param {Record<string, unknown>} params
   * @param {AbortSignal} [signal]
   * @param {Record<string, unknown>} [metadata] values that the protocol does not define
   * @returns {AsyncGenerator<ThreadEvent, void>}
   */
  async *stream(type, params, signal, metadata) {
    const { body } = await this.#post(type, params, signal, { detached: true, ...metadata });
    if (!body) throw new ConnectionLost();
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    const received = this.slowRequests.begin();
    const pauses = new Pauses();
    let buffer = "";
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const frames = (buffer + value).split(/\r?\n\r?\n/);
        buffer = frames.pop() ?? "";
        for (const frame of frames) {
          const data = dataOf(frame);
          if (!data) continue;
          received(true);
          await pauses.next();
          yield JSON.parse(data);
        }
      }
    } catch (error) {
      throw signal?.aborted ? error : new ConnectionLost();
    } finally {
      received();
      await reader.cancel().catch(() => {}); // it may have failed already
    }
    if (buffer.replace(/^:.*$/gm, "").trim()) throw new ConnectionLost(); // comments are ignored
  }

  /** Stops a run. @param {string} threadId @param {string} run */
  async cancel(threadId, run) {
    const url = new URL(`${interactionPath(threadId, run)}/cancel`, this.url);
    await this.#send(url, {}, { keepalive: true }); // the page may be closed
  }

  /** Returns the JSON response of another API. @param {string} path @param {object} [body] @param {string} [method] */
  async json(path, body, method = body ? "POST" : "GET") {
    return read(await this.#send(new URL(path, this.url), body, { method, cache: "no-store" }));
  }

  /** Throws `ConnectionLost` if the server does not respond. */
  async alive() {
    const response = await this.fetch(new URL("/health", this.url), { cache: "no-store" }).catch(() => null);
    if (!response?.ok) throw new ConnectionLost();
  }

  /** @param {string} type @param {Record<string, unknown>} params @param {AbortSignal} [signal] @param {object} [metadata] */
  #post(type, params, signal, metadata = {}) {
    return this.#send(this.url, { type, params, metadata }, signal && { signal });
  }

  /** @param {URL} url @param {object | undefined} body @param {RequestInit} [more] */
  async #send(url, body, more) {
    const received = this.slowRequests.begin();
    /** @type {Response} */
    let response;
    try {
      response = await this.fetch(url, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: body ? JSON.stringify(body) : null,
        ...more,
      });
    } catch (error) {
      throw more?.signal?.aborted ? error : new ConnectionLost();
    } finally {
      received();
    }
    const date = Date.parse(response.headers.get("date") ?? "");
    if (date) this.#clockDifference = date - Date.now();
    if (response.ok) return response;
    if (response.status >= 502 && response.status <= 504) throw new ConnectionLost();
    throw new HttpError(response.status, await sentence(response));
  }
}

/** Lets the browser draw and handle input between events, of which thousands may have been received. */
class Pauses {
  #last = performance.now();

  async next() {
    if (performance.now() - this.#last < PAUSE_AFTER) return;
    const { port1, port2 } = new MessageChannel(); // unlike timers, it is not throttled in hidden tabs
    await new Promise((resolve) => {
      port1.onmessage = resolve;
      port2.postMessage(null);
    });
    port1.close();
    this.#last = performance.now();
  }
}

/** @param {Response} response */
const read = (response) =>
  response.json().catch(() => {
    throw new ConnectionLost();
  });

/** @param {string} frame one frame of a server-sent event stream */
function dataOf(frame) {
  return frame
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5).trimStart())
    .join("\n");
}

/** @param {Response} response */
export async function sentence(response) {
  const body = await response.json().catch(() => null);
  return typeof body?.error === "string" ? body.error : TEXTS.talk.status(response.status);
}

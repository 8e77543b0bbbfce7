// @ts-check
import { TEXTS } from "../texts.js";
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
export const chatPath = (threadId) => `chats/${encodeURIComponent(threadId)}`;

/** @param {string} threadId @param {string} interaction */
export const interactionPath = (threadId, interaction) => `${chatPath(threadId)}/interactions/${encodeURIComponent(interaction)}`;

/** Sends requests of ChatKit, which are POSTs to one address, and of other APIs. */
export class Api {
  /**
   * @param {{url: string, fetch: typeof fetch}} options
   * @param {(isNews: boolean) => void} slow called when a request becomes slow, the first time with true, and when it is answered
   */
  constructor({ url, fetch: send }, slow) {
    this.slowRequests = new SlowRequests(slow);
    this.url = new URL(url, document.baseURI);
    this.fetch = send;
  }

  /**
   * Returns the JSON response of a request that does not stream.
   * @param {string} type
   * @param {Record<string, unknown>} params
   */
  async ask(type, params) {
    return read(await this.#send(this.url, { type, params, metadata: {} }));
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
    const { body } = await this.#send(this.url, { type, params, metadata: { detached: true, ...metadata } }, signal && { signal });
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

  /**
   * Returns the JSON response of another API.
   * @param {string} path @param {object} [body] @param {string} [method] @param {string} [key] an idempotency key
   */
  async json(path, body, method = body ? "POST" : "GET", key) {
    const headers = { "Content-Type": "application/json", ...(key && { "Idempotency-Key": key }) };
    return read(await this.#send(new URL(path, this.url), body, { method, headers, cache: "no-store" }));
  }

  /** Throws `ConnectionLost` if the server does not respond. */
  async alive() {
    const response = await this.fetch(new URL("health", this.url), { cache: "no-store" }).catch(() => null);
    if (!response?.ok) throw new ConnectionLost();
  }

  /** @param {URL} url @param {object | undefined} body @param {RequestInit} [more] */
  async #send(url, body, more) {
    const received = this.slowRequests.begin();
    const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: body ? JSON.stringify(body) : null, ...more };
    return request(this.fetch, url, init).finally(() => received());
  }
}

/** Sends a request; throws `ConnectionLost` or `HttpError` without a successful response. @param {typeof fetch} send @param {URL | string} url @param {RequestInit} init */
export async function request(send, url, init) {
  const response = await send(url, init).catch((error) => {
    throw init.signal?.aborted ? error : new ConnectionLost();
  });
  if (response.ok) return response;
  if (response.status >= 502 && response.status <= 504) throw new ConnectionLost();
  throw new HttpError(response.status, await sentence(response));
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

/** Returns the JSON of a response. @param {Response} response */
export const read = (response) =>
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

const SLOW_AFTER = 5000; // ms

/** Counts requests that take longer than usual. */
class SlowRequests {
  waiting = 0;
  #changed;

  /** @param {(isNews: boolean) => void} changed with true when a request is slow for the first time */
  constructor(changed) {
    this.#changed = changed;
  }

  /** Begins to wait. The returned function is called when data has arrived, with true if more is expected. */
  begin() {
    let late = false;
    let isNews = true;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const markSlow = () => {
      late = true;
      this.#count(1, isNews);
      isNews = false;
    };
    const received = (more = false) => {
      clearTimeout(timer);
      if (late) this.#count(-1);
      late = false;
      if (more) timer = setTimeout(markSlow, SLOW_AFTER);
    };
    received(true);
    return received;
  }

  /** @param {number} more @param {boolean} [isNews] */
  #count(more, isNews = false) {
    this.waiting += more;
    this.#changed(isNews);
  }
}

// @ts-check
import { loadModule } from "../http.js";

/** @type {Promise<typeof import("./log.js")> | undefined} */
let log;

/** Loads what renders and announces messages, once. */
export const loadLog = () => (log ??= loadModule(() => import("./log.js")));

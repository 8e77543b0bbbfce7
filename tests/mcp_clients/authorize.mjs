// Loaded before the conformance suite, which cannot send a token: adds one to each request of both HTTP clients in Node.
import { subscribe } from "node:diagnostics_channel";

const authorization = `Bearer ${process.env.MCP_TOKEN}`;
subscribe("undici:request:create", ({ request }) => request.addHeader("authorization", authorization));
subscribe("http.client.request.created", ({ request }) => request.setHeader("authorization", authorization));

// Signs in at an MCP server as the MCP TypeScript SDK does where a user has to allow it, and adds a task. Prints the address
// that a browser has to open, one line; then the tools and the result of the call. Its arguments: the server's address.
import { once } from "node:events";
import http from "node:http";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.NODE_MODULES}/`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { UnauthorizedError } = require("@modelcontextprotocol/sdk/client/auth.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const address = new URL(process.argv[2]);
const callback = http.createServer();
await once(callback.listen(0, "127.0.0.1"), "listening");
const redirectUrl = `http://127.0.0.1:${callback.address().port}/callback`;
const stored = {};
const state = "state of the test";
const authProvider = {
  redirectUrl,
  clientMetadata: { client_name: "TypeScript <b>client</b>", redirect_uris: [redirectUrl] },
  state: () => state,
  clientInformation: () => stored.client,
  saveClientInformation: (client) => (stored.client = client),
  tokens: () => stored.tokens,
  saveTokens: (tokens) => (stored.tokens = tokens),
  codeVerifier: () => stored.verifier,
  saveCodeVerifier: (verifier) => (stored.verifier = verifier),
  redirectToAuthorization: (url) => console.log(url.href),
};

const connect = async () => {
  const client = new Client({ name: "test", version: "1" });
  const transport = new StreamableHTTPClientTransport(address, { authProvider });
  await client.connect(transport).catch(async (error) => {
    if (!(error instanceof UnauthorizedError)) throw error;
    const [request, response] = await once(callback, "request");
    const answer = new URL(request.url, redirectUrl).searchParams;
    response.end("You can close this page.");
    if (answer.get("state") !== state) throw new Error("another state");
    if (!answer.has("code")) throw new Error(answer.get("error"));
    await transport.finishAuth(answer.get("code"));
  });
  return client;
};

try {
  await connect();
  const client = await connect();
  console.log(JSON.stringify((await client.listTools()).tools.map(({ name }) => name)));
  const added = await client.callTool({ name: "add_task", arguments: { title: "of the TypeScript client" } });
  console.log(JSON.stringify(added.structuredContent.title));
} catch (error) {
  console.log(error.message);
  process.exitCode = 1;
}
process.exit();

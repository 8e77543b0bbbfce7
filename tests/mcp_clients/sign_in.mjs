// Gets from an MCP server's address to its tools as the MCP TypeScript SDK does where it has to sign in: by the server's
// metadata to the issuer it names, and there to a token for the resource it names. Prints the tools, or why not (status 1).
// Its arguments: the server's address, the mapping of its port as compose writes it, and the issuer's address. The port
// is published here, and the issuer answers here: whoever asks is given a token for the resource that they ask for.
import { createHmac } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import { createRequire } from "node:module";
import net from "node:net";

const require = createRequire(`${process.env.NODE_MODULES}/`);
const { ClientCredentialsProvider } = require("@modelcontextprotocol/sdk/client/auth-extensions.js");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const [server, ports, issuer] = process.argv.slice(2);

function token(resource) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const claims = { iss: issuer, sub: "alice", aud: resource, exp: Math.floor(Date.now() / 1000) + 60 };
  const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}`;
  return `${signed}.${createHmac("sha256", process.env.IDP_SECRET).update(signed).digest("base64url")}`;
}

const METADATA = {
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  response_types_supported: ["code"],
};

const provider = http.createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  const answers = {
    "/.well-known/oauth-authorization-server": () => METADATA,
    "/token": () => ({ access_token: token(new URLSearchParams(body).get("resource")), token_type: "Bearer" }),
  };
  const answer = answers[request.url];
  response.writeHead(answer ? 200 : 404, { "content-type": "application/json" }).end(JSON.stringify(answer?.() ?? {}));
});

const [host, published, inside] = ports.split(":");
const forwarder = net.createServer((client) => {
  const container = net.connect(inside, host);
  client.pipe(container).pipe(client);
  for (const end of [client, container]) end.on("error", () => client.destroy() && container.destroy());
});

await Promise.all([
  once(provider.listen(new URL(issuer).port, host), "listening"),
  once(forwarder.listen(published, host), "listening"),
]);
const authProvider = new ClientCredentialsProvider({ clientId: "test", clientSecret: "test", expectedIssuer: issuer });
const client = new Client({ name: "test", version: "1" });
try {
  await client.connect(new StreamableHTTPClientTransport(new URL(server), { authProvider }));
  console.log(JSON.stringify((await client.listTools()).tools.map(({ name }) => name)));
} catch (error) {
  console.log(error.message);
  process.exitCode = 1;
}
process.exit();

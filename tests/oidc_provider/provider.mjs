// Serves the npm package oidc-provider with its own pages of sign-in, where any name and password will do.
import { readFileSync } from "node:fs";

const { packages, port, secret, page, claims } = JSON.parse(process.argv[2]);
const { Provider } = await import(`${packages}/oidc-provider/lib/index.js`);
const issuer = `http://localhost:${port}`;

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "todo",
      client_secret: secret,
      redirect_uris: [`${page}/session/callback`],
      post_logout_redirect_uris: [`${page}/`],
      grant_types: ["authorization_code", "refresh_token"],
    },
  ],
  claims: { email: ["email", "email_verified"], profile: ["name", "preferred_username"], groups: ["groups"] },
  cookies: { keys: ["of a test"] },
  // The file is read each time: users enter and leave groups while they are signed in.
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...JSON.parse(readFileSync(claims, "utf8"))[id] }) }),
  ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 86400, IdToken: 600, Interaction: 600, RefreshToken: 86400, Session: 86400 },
});
provider.listen(port, "127.0.0.1", () => console.log("listening"));

// An OpenID Connect provider that signs in whoever gives a name: node provider.mjs FOLDER. It prints its port, and begins once it is
// told, on a line of standard input, where it sends browsers back to. Each line after that is JSON that says what is otherwise from
// there on: `keys` for new ones of the same name, `token` for the path to change codes at, `scope` for what may be asked for,
// `groups` for those of users.
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { default: Provider } = await import(pathToFileURL(`${process.argv[2]}/node_modules/oidc-provider/lib/index.js`));
let groups = { anna: ["tw-admins", "tw"], ben: ["tw"] };
const account = (id) => ({
  accountId: id,
  claims: () => ({ sub: id, preferred_username: id, groups: groups[id] ?? [] }),
});
const key = () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), kid: "one", use: "sig", alg: "RS256" };
};

let answer = (_request, response) => response.writeHead(503).end();
const server = createServer((request, response) => answer(request, response));
server.listen(0, "127.0.0.1");
await once(server, "listening");
const { port } = server.address();
console.log(port);

const client = { client_id: "turnwright", client_secret: "a secret/with:odd+characters" };
let jwks = { keys: [key()] };
let routes = {};
const begin = () => {
  const provider = new Provider(`http://127.0.0.1:${port}`, {
    clients: [client],
    claims: { openid: ["sub"], profile: ["preferred_username"], groups: ["groups"] },
    scopes: ["openid", "profile", "groups"],
    pkce: { required: () => true, methods: ["S256"] },
    findAccount: (_context, id) => account(id),
    jwks,
    routes,
  });
  answer = provider.callback();
  console.log("ready");
};
for await (const line of createInterface({ input: process.stdin })) {
  if (client.redirect_uris) {
    const { keys, token, scope, groups: given } = JSON.parse(line);
    if (given) groups = given;
    if (keys) jwks = { keys: [key()] };
    if (token) routes = { token };
    if (scope) client.scope = scope;
  } else {
    client.redirect_uris = [line];
  }
  begin();
}
process.exit(0);

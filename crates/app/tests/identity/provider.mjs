// An OpenID Connect provider that signs in whoever gives a name: node provider.mjs FOLDER. It prints its port, and begins once it is
// told, on a line of standard input, where it sends browsers back to.
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { default: Provider } = await import(pathToFileURL(`${process.argv[2]}/node_modules/oidc-provider/lib/index.js`));
const groups = { anna: ["tw-admins", "tw"], ben: ["tw"] };
const account = (id) => ({
  accountId: id,
  claims: () => ({ sub: id, preferred_username: id, groups: groups[id] ?? [] }),
});

let answer = (_request, response) => response.writeHead(503).end();
const server = createServer((request, response) => answer(request, response));
server.listen(0, "127.0.0.1");
await once(server, "listening");
const { port } = server.address();
console.log(port);
const [redirect] = await once(createInterface({ input: process.stdin }), "line");
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "turnwright", client_secret: "a secret/with:odd+characters", redirect_uris: [redirect] }],
  claims: { openid: ["sub"], profile: ["preferred_username"], groups: ["groups"] },
  scopes: ["openid", "profile", "groups"],
  pkce: { required: () => true, methods: ["S256"] },
  findAccount: (_context, id) => account(id),
});
answer = provider.callback();
console.log("ready");
process.stdin.on("end", () => process.exit(0));

// An MCP server over HTTP that lets in who has signed in, with the authorization server that it names: whoever opens its address is signed
// in at once, or refused.

import { once } from "node:events";
import { createServer } from "node:http";

export async function startGuarded() {
  const state = { isWilling: true, visits: 0 };
  const server = createServer(async (request, response) => {
    const base = `http://127.0.0.1:${server.address().port}`;
    const url = new URL(request.url, base);
    let body = "";
    for await (const piece of request) body += piece;
    const tell = (told, status = 200, headers = {}) => response.writeHead(status, { "content-type": "application/json", ...headers }).end(told === null ? "" : JSON.stringify(told));
    if (url.pathname.startsWith("/.well-known/oauth-protected-resource")) return tell({ resource: `${base}/mcp`, authorization_servers: [base] });
    if (url.pathname.startsWith("/.well-known/oauth-authorization-server")) {
      return tell({
        issuer: base, authorization_endpoint: `${base}/authorize`, token_endpoint: `${base}/token`, registration_endpoint: `${base}/register`,
        response_types_supported: ["code"], grant_types_supported: ["authorization_code"], code_challenge_methods_supported: ["S256"], token_endpoint_auth_methods_supported: ["none"],
      });
    }
    if (url.pathname === "/register") return tell({ client_id: "turnwright", ...JSON.parse(body) }, 201);
    if (url.pathname === "/authorize") {
      state.visits += 1;
      const back = new URL(url.searchParams.get("redirect_uri"));
      back.searchParams.set("state", url.searchParams.get("state"));
      if (state.isWilling) back.searchParams.set("code", "one");
      else back.searchParams.set("error", "access_denied");
      return response.writeHead(302, { location: back.href }).end();
    }
    if (url.pathname === "/token") return tell({ access_token: "let-me-in", token_type: "Bearer", expires_in: 3600 });
    if (url.pathname !== "/mcp") return tell(null, 404);
    if (request.headers.authorization !== "Bearer let-me-in") {
      return tell(null, 401, { "www-authenticate": `Bearer resource_metadata="${base}/.well-known/oauth-protected-resource/mcp"` });
    }
    if (request.method !== "POST") return tell(null, 405);
    const { id, method } = JSON.parse(body);
    const result = {
      initialize: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "guarded", version: "1" } },
      ping: {},
      "tools/list": { tools: [{ name: "secret", description: "Behind a sign-in", inputSchema: { type: "object" } }] },
    }[method];
    if (id === undefined) return tell(null, 202);
    return tell({ jsonrpc: "2.0", id, ...(result ? { result } : { error: { code: -32601, message: "there is none" } }) });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}/mcp`,
    state,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

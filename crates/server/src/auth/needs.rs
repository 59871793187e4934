//! What each route needs of whoever calls it, in one table.

use http::Method;
use turnwright_engine::accounts::Scope;

/// What a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: whoever comes is told.
    Nobody,
    /// A caller whose credential has this scope.
    Scope(Scope),
    /// The same, and an admin: what is told is of the whole installation.
    AdminWith(Scope),
}

/// Looking is told apart from everything else.
struct Row {
    path: &'static str,
    look: Need,
    change: Need,
}

const NOBODY: Need = Need::Nobody;
const READ: Need = Need::Scope(Scope::Read);
const CHAT: Need = Need::Scope(Scope::Chat);
const APPROVE: Need = Need::Scope(Scope::Approve);
const ADMIN: Need = Need::Scope(Scope::Admin);

const fn row(path: &'static str, look: Need, change: Need) -> Row {
    Row { path, look, change }
}

/// Every route that there is. What everyone's MCP servers need besides is looked at where the server is known.
const TABLE: &[Row] = &[
    row("/healthz", NOBODY, NOBODY),
    row("/readyz", NOBODY, NOBODY),
    row("/metrics", Need::AdminWith(Scope::Read), ADMIN),
    row("/login", NOBODY, NOBODY),
    row("/login/oidc", NOBODY, NOBODY),
    row("/login/callback", NOBODY, NOBODY),
    row("/logout", NOBODY, NOBODY),
    row("/openapi.json", NOBODY, NOBODY),
    row("/docs", NOBODY, NOBODY),
    row("/docs/{file}", NOBODY, NOBODY),
    row("/page/{*path}", NOBODY, NOBODY),
    row("/apps/frame", NOBODY, NOBODY),
    row("/", READ, READ),
    row("/api/v1/me", READ, READ),
    row("/api/v1/conversations", READ, CHAT),
    row("/api/v1/conversations/{id}", READ, CHAT),
    row("/api/v1/conversations/{id}/messages", READ, CHAT),
    row("/api/v1/conversations/{id}/messages/{message}", READ, CHAT),
    row("/api/v1/conversations/{id}/chat", READ, CHAT),
    row("/api/v1/conversations/{id}/events", READ, CHAT),
    row("/api/v1/conversations/{id}/stream", READ, CHAT),
    row("/api/v1/conversations/{id}/turns", READ, CHAT),
    row("/api/v1/conversations/{id}/cancel", READ, CHAT),
    row("/api/v1/conversations/{id}/retry", READ, CHAT),
    row("/api/v1/conversations/{id}/compact", READ, CHAT),
    row("/api/v1/conversations/{id}/compact/undo", READ, CHAT),
    row("/api/v1/conversations/{id}/fork", READ, CHAT),
    row("/api/v1/conversations/{id}/calls", READ, CHAT),
    row("/api/v1/conversations/{id}/calls/{call}/decision", READ, APPROVE),
    row("/api/v1/conversations/{id}/questions/{question}/answer", READ, APPROVE),
    row("/api/v1/conversations/{id}/tools", READ, CHAT),
    row("/api/v1/conversations/{id}/tools/available", READ, CHAT),
    row("/api/v1/conversations/{id}/knowledge", READ, CHAT),
    row("/api/v1/conversations/{id}/knowledge/{document}", READ, CHAT),
    row("/api/v1/knowledge", READ, CHAT),
    row("/api/v1/knowledge/{name}/search", READ, CHAT),
    row("/api/v1/memory", READ, CHAT),
    row("/api/v1/artifacts", READ, CHAT),
    row("/api/v1/artifacts/{id}", READ, CHAT),
    row("/api/v1/approvals", READ, APPROVE),
    row("/api/v1/approvals/rules", READ, APPROVE),
    row("/api/v1/approvals/rules/{rule}", READ, APPROVE),
    row("/api/v1/approvals/explain", READ, READ),
    row("/api/v1/tools", READ, CHAT),
    row("/api/v1/tools/call", READ, APPROVE),
    row("/api/v1/models", READ, CHAT),
    row("/api/v1/providers", READ, CHAT),
    row("/api/v1/providers/{id}", READ, ADMIN),
    row("/api/v1/usage", READ, CHAT),
    row("/api/v1/usage/users", Need::AdminWith(Scope::Read), ADMIN),
    row("/api/v1/mcp/servers", READ, CHAT),
    row("/api/v1/mcp/servers/{id}", READ, CHAT),
    row("/api/v1/mcp/servers/{id}/start", READ, CHAT),
    row("/api/v1/mcp/servers/{id}/stop", READ, CHAT),
    row("/api/v1/mcp/servers/{id}/restart", READ, CHAT),
    row("/api/v1/mcp/servers/{id}/sign_in", READ, CHAT),
    row("/api/v1/mcp/servers/{id}/tools", READ, CHAT),
    row("/api/v1/mcp/servers/{id}/tools/{tool}/approve", READ, APPROVE),
    row("/api/v1/mcp/servers/{id}/logs", READ, CHAT),
    row("/api/v1/mcp/servers/{id}/resources", READ, CHAT),
    row("/api/v1/mcp/servers/{id}/resources/read", READ, READ),
    row("/api/v1/mcp/servers/{id}/resource_templates", READ, CHAT),
    row("/api/v1/mcp/servers/{id}/prompts", READ, CHAT),
    row("/api/v1/mcp/servers/{id}/prompts/get", READ, READ),
    row("/api/v1/mcp/servers/{id}/complete", READ, READ),
    row("/api/v1/mcp/servers/{id}/apps/open", READ, READ),
    row("/api/v1/mcp/servers/{id}/apps/call", READ, CHAT),
    row("/api/v1/tokens", READ, CHAT),
    row("/api/v1/tokens/{id}", READ, CHAT),
    row("/api/v1/users", ADMIN, ADMIN),
    row("/api/v1/users/{id}", ADMIN, ADMIN),
    row("/api/v1/users/{id}/tokens", ADMIN, ADMIN),
    row("/api/v1/users/{id}/links", ADMIN, ADMIN),
    row("/api/chat", READ, CHAT),
    row("/api/chat/{id}/stream", READ, CHAT),
    row("/ag-ui", READ, CHAT),
    row("/mcp", CHAT, CHAT),
    row("/v1/chat/completions", READ, CHAT),
    row("/v1/responses", READ, CHAT),
    row("/v1/responses/{id}", READ, CHAT),
    row("/v1/responses/{id}/cancel", READ, CHAT),
    row("/v1/responses/{id}/input_items", READ, CHAT),
    row("/v1/models", READ, CHAT),
    row("/v1/models/{*id}", READ, CHAT),
];

/// What the route of this path, as the router names it, needs. One that is not in the table is for admins alone, so that a
/// forgotten line lets nobody in.
pub(crate) fn need(method: &Method, route: Option<&str>) -> Need {
    // Where there is no route, whoever is known is told so.
    let Some(route) = route else { return READ };
    let Some(row) = TABLE.iter().find(|row| row.path == route) else { return ADMIN };
    if method == Method::GET || method == Method::HEAD || method == Method::OPTIONS { row.look } else { row.change }
}

/// Whether the table has this route.
#[cfg(test)]
pub(crate) fn is_listed(route: &str) -> bool {
    TABLE.iter().any(|row| row.path == route)
}

#[cfg(test)]
mod tests {
    use super::{ADMIN, Method, is_listed, need};

    #[test]
    fn every_route_that_is_described_says_what_it_needs() {
        let document = serde_json::to_value(crate::routes::openapi()).unwrap();
        // A name with slashes in it is told apart by the router alone.
        let is_known = |path: &str| is_listed(path) || is_listed(&path.replace("{id}", "{*id}"));
        let missing: Vec<&String> = document["paths"].as_object().unwrap().keys().filter(|path| !is_known(path)).collect();
        assert_eq!(missing, Vec::<&String>::new(), "add them to the table in auth/needs.rs");
    }

    #[test]
    fn a_route_that_was_forgotten_is_for_admins_alone() {
        assert_eq!(need(&Method::GET, Some("/api/v1/new")), ADMIN);
    }
}

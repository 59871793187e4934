//! Who sends a request.

use std::sync::Arc;

use turnwright_core::UserId;
use turnwright_engine::accounts::{Credential, CredentialKind, Role, Scope, Scopes, User};

/// Who sends a request, and what may be done with what they are known by. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Caller(Arc<Known>);

#[derive(Debug)]
struct Known {
    user: UserId,
    name: String,
    role: Role,
    scopes: Scopes,
    how: How,
}

/// By what a caller is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum How {
    /// Not at all.
    Nobody,
    /// By sitting at this machine.
    Local,
    /// By a token.
    Token(Arc<Credential>),
    /// By a browser's cookie.
    Session(Arc<Credential>),
}

impl Caller {
    /// Whoever sits at this machine, where nobody has to sign in.
    pub(crate) fn local() -> Self {
        Self(Arc::new(Known {
            user: UserId::local(),
            name: UserId::LOCAL.to_owned(),
            role: Role::Admin,
            scopes: Scopes::of_role(Role::Admin),
            how: How::Local,
        }))
    }

    /// Whoever comes without being known, where the route needs nobody. Nothing belongs to them.
    pub(crate) fn nobody() -> Self {
        Self(Arc::new(Known {
            user: "nobody".parse().unwrap_or_default(),
            name: "nobody".to_owned(),
            role: Role::Member,
            scopes: Scopes::default(),
            how: How::Nobody,
        }))
    }

    /// A user who is known by a credential: what it allows and the user's role allows too.
    pub(crate) fn known(user: User, credential: Credential) -> Self {
        let scopes = credential.scopes.within(&Scopes::of_role(user.role));
        let credential = Arc::new(credential);
        let how = match credential.kind {
            CredentialKind::Token | CredentialKind::Link => How::Token(credential),
            CredentialKind::Session => How::Session(credential),
        };
        Self(Arc::new(Known { user: user.id, name: user.name, role: user.role, scopes, how }))
    }

    /// Whose request it is.
    pub(crate) fn user(&self) -> &UserId {
        &self.0.user
    }

    /// What people call the user.
    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// The user's role.
    pub(crate) fn role(&self) -> Role {
        self.0.role
    }

    /// What may be done.
    pub(crate) fn scopes(&self) -> &Scopes {
        &self.0.scopes
    }

    /// By what they are known.
    pub(crate) fn how(&self) -> &How {
        &self.0.how
    }

    /// Whether this may be done.
    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.0.scopes.has(scope)
    }
}

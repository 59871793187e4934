//! The ids under which calls are shown to a model.

use std::collections::HashSet;

use turnwright_core::CallId;

use crate::profile::ToolCallIds;

/// Gives every call of a request an id of its own: the provider's where it came from there and no earlier call has it,
/// else ours. Depends on earlier calls alone, so the bytes before a new message stay the same (law 7).
#[derive(Debug, Clone)]
pub(crate) struct Ids {
    policy: ToolCallIds,
    taken: HashSet<Box<str>>,
}

impl Ids {
    pub(crate) fn new(policy: ToolCallIds) -> Self {
        Self { policy, taken: HashSet::new() }
    }

    /// The id of the next call. `from_origin` is the provider's id where the request goes to where the call came from.
    pub(crate) fn id(&mut self, own: CallId, from_origin: Option<&str>) -> String {
        if let Some(id) = from_origin
            && self.fits(id)
            // Another call of ours may have it.
            && id.parse::<CallId>().is_ok_and(|parsed| parsed == own) | id.parse::<CallId>().is_err()
            && self.taken.insert(id.into())
        {
            return id.to_owned();
        }
        match self.policy {
            ToolCallIds::Any | ToolCallIds::Max40 | ToolCallIds::Max64 | ToolCallIds::Word64 => own.to_string(),
            ToolCallIds::Alnum9 => short(own),
        }
    }

    fn fits(&self, id: &str) -> bool {
        match self.policy {
            ToolCallIds::Any => !id.is_empty(),
            ToolCallIds::Max40 => is_short(id, 40),
            ToolCallIds::Max64 => is_short(id, 64),
            ToolCallIds::Word64 => is_short(id, 64) && !id.contains(['.', ':']),
            ToolCallIds::Alnum9 => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
        }
    }
}

fn is_short(id: &str, limit: usize) -> bool {
    (1..=limit).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':'))
}

/// Nine letters and digits that are always the same for a call: its name in base 62, behind a hash of it.
fn short(own: CallId) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let name = own.to_string();
    // FNV-1a, whose result is fixed for good.
    let mut hash =
        name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (0..9)
        .map(|_| {
            let digit = usize::try_from(hash % 62).ok().and_then(|at| DIGITS.get(at)).copied().unwrap_or(b'0');
            hash /= 62;
            char::from(digit)
        })
        .collect()
}

//! The versions of the protocol that are spoken here.

use rmcp::model::ProtocolVersion;
use serde::{Deserialize, Serialize};

use crate::era::Era;

/// A version of the protocol in which the operator wants a server to be spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// 2024-11-05.
    #[serde(rename = "2024-11-05")]
    V20241105,
    /// 2025-03-26.
    #[serde(rename = "2025-03-26")]
    V20250326,
    /// 2025-06-18.
    #[serde(rename = "2025-06-18")]
    V20250618,
    /// 2025-11-25.
    #[serde(rename = "2025-11-25")]
    V20251125,
    /// 2026-07-28, which has no handshake.
    #[serde(rename = "2026-07-28")]
    V20260728,
}

impl Protocol {
    /// All of them, the oldest first.
    pub const ALL: [Self; 5] = [Self::V20241105, Self::V20250326, Self::V20250618, Self::V20251125, Self::V20260728];

    /// As the protocol says it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V20241105 => "2024-11-05",
            Self::V20250326 => "2025-03-26",
            Self::V20250618 => "2025-06-18",
            Self::V20251125 => "2025-11-25",
            Self::V20260728 => "2026-07-28",
        }
    }

    pub(crate) fn era(self) -> Era {
        match self {
            Self::V20241105 | Self::V20250326 | Self::V20250618 | Self::V20251125 => Era::Legacy,
            Self::V20260728 => Era::Modern,
        }
    }

    /// What is asked for in a handshake.
    pub(crate) fn version(self) -> ProtocolVersion {
        match self {
            Self::V20241105 => ProtocolVersion::V_2024_11_05,
            Self::V20250326 => ProtocolVersion::V_2025_03_26,
            Self::V20250618 => ProtocolVersion::V_2025_06_18,
            Self::V20251125 => ProtocolVersion::V_2025_11_25,
            Self::V20260728 => ProtocolVersion::V_2026_07_28,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_that_is_known_can_be_asked_for_by_its_name() {
        assert_eq!(Protocol::ALL.map(Protocol::version), ProtocolVersion::KNOWN_VERSIONS);
        for protocol in Protocol::ALL {
            assert_eq!(protocol.version().as_str(), protocol.as_str());
            assert_eq!(serde_json::to_value(protocol).unwrap(), protocol.as_str());
            assert_eq!(protocol.era() == Era::Modern, !protocol.version().has_initialize());
        }
    }
}

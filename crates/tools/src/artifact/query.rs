//! The tool `query`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use turnwright_engine::source::{CallContext, ToolError, ToolOutput};

use super::bytes::{Pieces, Whole};
use super::json::{self, Broken, MOST_LOOKED_AT, MOST_VALUE_BYTES, Numbers, Path, Take};
use super::{Shared, output};
use crate::error::{failed, grouped, invalid};

pub(super) const DESCRIPTION: &str = "Takes values out of an artifact that is JSON, or a JSON value on each line, by a JSONPath \
    such as `$.items[*].name`, `$.items[10]` or `$.items[?@.price < 10].id`. Each value comes on a line of its own.";

/// The most values that are given where nothing is said.
const USUAL_VALUES: u64 = 100;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The id that a result names: `art_…`.
    artifact: String,
    /// What is wanted, as a path of RFC 9535.
    path: String,
    /// The most values that are given; 100 by default.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// How many values are passed over, to go on after others.
    skip: Option<u64>,
}

pub(super) async fn query(shared: &Shared, arguments: Arguments, context: &CallContext) -> Result<ToolOutput, ToolError> {
    let Arguments { artifact, path, limit, skip } = arguments;
    let path = Path::new(&path).map_err(|error| invalid(format!("path is not a JSONPath: {error}")))?;
    let whole = Whole::open(shared, &context.user, &artifact).await?;
    let taken = Taken {
        lines: Vec::new(),
        bytes: 0,
        most_bytes: shared.most_bytes,
        skip: skip.unwrap_or(0),
        limit: limit.unwrap_or(USUAL_VALUES).max(1),
        seen: 0,
        end: End::Reached,
    };
    shared.through(whole, context, move |pieces, cancel| taken_from(&path, taken, pieces, cancel)).await
}

fn taken_from(path: &Path, mut taken: Taken, pieces: Pieces, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    match json::select(path, pieces, &mut taken) {
        Ok(()) => Ok(taken.output()),
        Err(_) if cancel.is_cancelled() => Err(failed("the call was given up")),
        Err(Broken::TooLarge) => Err(invalid(format!(
            "what would have to be looked at together is over {} bytes; narrow it down by a path of names, numbers and `[*]` first, \
             or use artifact__page",
            grouped(MOST_VALUE_BYTES)
        ))),
        Err(Broken::TooMuch) => Err(invalid(format!(
            "such a path looks at more than {} values; take fewer `..` and fewer selectors in brackets, or narrow it down by a path of \
             names, numbers and `[*]` first",
            grouped(MOST_LOOKED_AT)
        ))),
        Err(Broken::Unreadable(reason)) => {
            Err(invalid(format!("the artifact is not JSON ({reason}); artifact__search and artifact__page take any text")))
        }
    }
}

/// Where the taking ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// There are no more values.
    Reached,
    /// There are.
    Before,
}

/// The values that were taken.
#[derive(Debug)]
struct Taken {
    lines: Vec<String>,
    bytes: usize,
    most_bytes: usize,
    skip: u64,
    limit: u64,
    seen: u64,
    end: End,
}

impl Take for Taken {
    fn take(&mut self, value: &Value, numbers: &Numbers<'_>) -> bool {
        self.seen = self.seen.saturating_add(1);
        if self.seen <= self.skip {
            return true;
        }
        let mut line = numbers.text(value);
        let is_first = self.lines.is_empty();
        if self.lines.len() as u64 >= self.limit || (!is_first && self.bytes.saturating_add(line.len()) > self.most_bytes) {
            self.end = End::Before;
            return false;
        }
        if line.len() > self.most_bytes {
            let whole = line.len() as u64;
            line.truncate(line.floor_char_boundary(self.most_bytes));
            line = format!("{line}… [of {} bytes: ask for its parts]", grouped(whole));
        }
        self.bytes = self.bytes.saturating_add(line.len()).saturating_add(1);
        self.lines.push(line);
        true
    }
}

impl Taken {
    fn output(self) -> ToolOutput {
        let given = self.lines.len() as u64;
        let note = match (given, self.end) {
            (0, _) if self.skip > 0 => format!("no values after the first {}", grouped(self.skip)),
            (0, _) => "the path selects nothing".to_owned(),
            (1, End::Before) => format!("1 value, and there are more: go on with skip {}", self.skip + 1),
            (given, End::Before) => {
                format!("{} values, and there are more: go on with skip {}", grouped(given), self.skip + given)
            }
            (1, End::Reached) => "1 value, the last one".to_owned(),
            (given, End::Reached) => format!("{} values, the last ones", grouped(given)),
        };
        output(self.lines.join("\n"), &note)
    }
}

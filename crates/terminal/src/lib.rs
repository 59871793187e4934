//! The terminal chat: streamed text, visible tool calls, approval prompts.
//!
//! [`Renderer`] turns engine events into text and is pure. [`Session`] is the conversation that a chat talks in,
//! [`Follow`] brings a turn to its end and tells an [`Audience`] about it, [`carry`] also asks people about calls,
//! [`interactive`] is the chat itself. Keys come in by [`LineEditor`], everything goes out through a [`Screen`]. Not here:
//! the command line, files, signals and exit codes, which are the program's.

mod abridge;
mod answer;
mod approval;
mod carry;
mod clean;
mod command;
mod editor;
mod ending;
mod follow;
mod held;
mod interactive;
mod look;
mod renderer;
mod screen;
mod session;
mod tool_line;

pub use abridge::beginning;
pub use answer::{answering, asked};
pub use approval::{Reply, parse_reply, question, suggested};
pub use carry::{Carried, carry};
pub use clean::{clean_json_lines, clean_line, clean_text};
pub use command::{Command, parse_command};
pub use editor::{Line, LineEditor};
pub use ending::{Ending, ending};
pub use follow::{Audience, Follow, Interrupt, Interrupts, Settled, Stop};
pub use held::hold;
pub use interactive::{Leave, interactive};
pub use look::Look;
pub use renderer::Renderer;
pub use screen::{Piece, Screen, Stream, Teller};
pub use session::{Session, Told, Which};
pub use tool_line::compact;

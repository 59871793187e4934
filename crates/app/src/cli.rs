//! What can be typed.

pub(crate) mod users;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use turnwright_core::{ApproveMode, ConversationId, MessageId, ModelRef};
use turnwright_host::export::ExportForm;

mod approvals;
pub(crate) mod db;
pub(crate) mod knowledge;

pub(crate) use approvals::{AddRule, Answer, Approvals, Decide, Explain, RuleScope, Rules};

/// Lets a language model work with tools: chat here, or serve an HTTP API.
#[derive(Debug, Parser)]
#[command(name = "turnwright", version, propagate_version = false, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) everywhere: Everywhere,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The flags that every command has.
#[derive(Debug, Args)]
pub(crate) struct Everywhere {
    /// The configuration file; turnwright.toml here, then in the user's configuration directory, unless given
    #[arg(long, global = true, value_name = "FILE", help_heading = "Everywhere")]
    pub(crate) config: Option<PathBuf>,
    /// Where conversations and other data are kept; created where it is missing
    #[arg(long, global = true, value_name = "DIR", help_heading = "Everywhere")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Another database than the one in the data directory: a SQLite file, or postgres://…
    #[arg(long, global = true, value_name = "URL", help_heading = "Everywhere")]
    pub(crate) database: Option<String>,
    /// The user whose conversations are meant, by name or id; `local` unless given
    #[arg(long, global = true, value_name = "NAME", help_heading = "Everywhere")]
    pub(crate) user: Option<String>,
    /// What is logged: off, error, warn, info, debug, trace, or directives
    #[arg(long, global = true, value_name = "LEVEL", help_heading = "Everywhere")]
    pub(crate) log_level: Option<String>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Ask a model, once or in a chat
    Chat(Chat),
    /// Serve the HTTP API
    Serve(Serve),
    /// Serve an editor that speaks the Agent Client Protocol, over standard input and output
    Acp,
    /// The tools that models are offered
    #[command(subcommand)]
    Tools(Tools),
    /// MCP servers
    #[command(subcommand)]
    Mcp(AnyMcp),
    /// Models and their providers
    #[command(subcommand)]
    Models(Models),
    /// Stored conversations
    #[command(subcommand)]
    Conversations(Conversations),
    /// Documents that are looked up for each message
    #[command(subcommand)]
    Knowledge(knowledge::Knowledge),
    /// What is remembered of the user
    #[command(subcommand)]
    Memory(knowledge::Memory),
    /// Calls that wait for a person
    #[command(subcommand)]
    Approvals(Approvals),
    /// Who may sign in at the server, and by what they are known
    #[command(subcommand)]
    Users(users::Users),
    /// The database as a whole
    #[command(subcommand)]
    Db(db::Db),
    /// The configuration
    #[command(subcommand)]
    Config(Config),
    /// Look at everything that could be wrong
    Doctor(Doctor),
}

/// Looks at what could be wrong.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Doctor {
    /// Only ask the server that runs here, at the address of the configuration, whether it is ready; nothing is started
    #[arg(long)]
    pub(crate) serving: bool,
    #[command(flatten)]
    pub(crate) listed: Listed,
}

/// Whether a list is for programs.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Listed {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Asks a model.
#[derive(Debug, Args)]
pub(crate) struct Chat {
    /// The message; without it, what is piped in, or a chat on a terminal
    pub(crate) prompt: Option<String>,
    /// The model, PROVIDER/MODEL
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<ModelRef>,
    /// The conversation to go on with, or to begin where there is none of this name
    #[arg(long, value_name = "ID", conflicts_with = "continue_")]
    pub(crate) conversation: Option<ConversationId>,
    /// Go on with the conversation that was used last
    #[arg(long = "continue")]
    pub(crate) continue_: bool,
    /// Ask again where the last turn of the conversation failed or was stopped
    #[arg(long, conflicts_with_all = ["prompt", "attach", "document"])]
    pub(crate) retry: bool,
    /// Offer only the tools that match, `!GLOB` all but those that match; may be given several times
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    /// What happens to calls for which no rule decides
    #[arg(long, value_name = "MODE")]
    pub(crate) approve: Option<Approve>,
    /// The most model calls of a turn
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: Option<u32>,
    /// How the answer is printed
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: Form,
    /// What the model is told before the conversation
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// A text file, an image or a PDF file to send along; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
    /// A document to put beside the conversation: what it says to a message is looked up each time; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) document: Vec<PathBuf>,
}

/// What happens to calls for which no rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// A person is asked about tools that are not declared read-only
    Ask,
    /// They run
    All,
    /// They do not run
    None,
    /// Only tools that are declared read-only run
    ReadOnly,
}

impl From<Approve> for ApproveMode {
    fn from(approve: Approve) -> Self {
        match approve {
            Approve::Ask => Self::Ask,
            Approve::All => Self::All,
            Approve::None => Self::None,
            Approve::ReadOnly => Self::ReadOnly,
        }
    }
}

/// How an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// The answer's text as it comes
    Text,
    /// One JSON object at the end
    Json,
    /// One event per line as it comes
    Events,
}

/// Serves.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The address and port to listen at; 127.0.0.1:8700 unless configured otherwise
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// Share turns with the other servers over the same data, through the NATS servers at these addresses
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// Offer what the conformance suite calls by name
    #[arg(long, hide = true)]
    pub(crate) conformance_fixtures: bool,
}

/// Tools.
#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// List the tools that are offered
    List(Listed),
    /// Show one tool with the schema of its arguments
    Show {
        /// The tool's name, such as `filesystem__read`
        name: String,
        #[command(flatten)]
        listed: Listed,
    },
    /// Run one tool as a turn would, and print what it gave
    Call {
        /// The tool's name, such as `filesystem__read`
        name: String,
        /// The arguments, a JSON object
        #[arg(long, value_name = "JSON", default_value = "{}")]
        arguments: String,
        /// What happens where no rule decides; alone it means all
        #[arg(long, value_name = "MODE", num_args = 0..=1, default_missing_value = "all")]
        approve: Option<Approve>,
    },
}

/// MCP servers, configured or not.
#[derive(Debug, Subcommand)]
pub(crate) enum AnyMcp {
    #[command(flatten)]
    Configured(Mcp),
    /// Try everything with a server that is not configured: sign in, list, call each tool; prints JSON and keeps nothing
    Exercise(McpExercise),
}

/// MCP servers.
#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// List the servers: those of files, and those that were added
    List(Listed),
    /// Add a server; hosts that run take it over, nothing is restarted
    Add(McpAdd),
    /// Remove a server that was added
    Remove {
        /// The server's name
        name: String,
    },
    /// Take servers over from another program's file: Claude, Cursor, VS Code, goose, or a `servers` list
    Import(McpImport),
    /// Agree to what a server's tools are now, or to one of them: a tool that changes after that is set aside
    Approve {
        /// The server's name
        name: String,
        /// The tool's name at the server; all where not given
        tool: Option<String>,
    },
    /// Print the last lines of a server, from whichever process runs it
    Logs {
        /// The server's name
        name: String,
        #[command(flatten)]
        listed: Listed,
    },
    /// Sign in at a server with an address, in the browser
    Login {
        /// The server's name
        name: String,
        /// The program that opens the address, in place of the system's
        #[arg(long, value_name = "PROGRAM", conflicts_with = "no_browser")]
        open: Option<String>,
        /// Only print the address
        #[arg(long)]
        no_browser: bool,
    },
    /// Offer all tools to the MCP client that started this, over standard input and output
    Serve(McpServe),
    /// Forget what signing in at a server brought
    Logout {
        /// The server's name
        name: String,
    },
    /// List the resources of a server, or read one
    Resources(McpResources),
    /// List the prompts of a server, or see what one comes to
    Prompts(McpPrompts),
    /// Start one server and say how it is
    Check {
        /// The server's name
        name: String,
        #[command(flatten)]
        listed: Listed,
    },
}

/// Offers all tools to an MCP client.
#[derive(Debug, Args)]
pub(crate) struct McpServe {
    /// What happens to calls for which no rule decides
    #[arg(long, value_name = "MODE")]
    pub(crate) approve: Option<Approve>,
}

/// Tries a server that is not configured.
#[derive(Debug, Args)]
pub(crate) struct McpExercise {
    /// Its address
    pub(crate) url: String,
    /// Call every tool; without it only those that are declared read-only, which is none
    #[arg(long)]
    pub(crate) yes: bool,
    /// A call to make in place of one of each tool, {"name": …, "arguments": {…}}; may be given several times
    #[arg(long, value_name = "JSON")]
    pub(crate) call: Vec<String>,
    /// The program that opens the address to sign in, in place of the system's
    #[arg(long, value_name = "PROGRAM", conflicts_with = "no_browser")]
    pub(crate) open: Option<String>,
    /// Only print the address to sign in
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// The client that is registered at the authorization server
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// Its secret
    #[arg(long, value_name = "SECRET", requires = "client_id")]
    pub(crate) client_secret: Option<String>,
    /// Sign in with that id and secret, without a browser
    #[arg(long, requires = "client_secret")]
    pub(crate) client_credentials: bool,
    /// Where the client describes itself, for authorization servers that take that
    #[arg(long, value_name = "URL")]
    pub(crate) client_metadata_url: Option<String>,
}

/// Servers to take over.
#[derive(Debug, Args)]
pub(crate) struct McpImport {
    /// The file, such as `claude_desktop_config.json`, `.mcp.json`, `.vscode/mcp.json` or goose's `config.yaml`
    pub(crate) file: PathBuf,
    /// Add them; without it they are shown as they would be configured
    #[arg(long)]
    pub(crate) write: bool,
    /// What the file asks for (`inputs`), where it is no password; may be given several times
    #[arg(long, value_name = "ID=VALUE")]
    pub(crate) input: Vec<String>,
}

/// A server to add.
#[derive(Debug, Args)]
pub(crate) struct McpAdd {
    /// Its name: the first half of its tools' names
    pub(crate) name: String,
    /// The program and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["url", "image"], conflicts_with = "url")]
    pub(crate) command: Vec<String>,
    /// The address of a server that talks over HTTP, in place of a program
    #[arg(long, value_name = "URL", conflicts_with = "image")]
    pub(crate) url: Option<String>,
    /// The Docker image of a server, in place of a program; what follows `--` is for the container
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// A variable of the server; `${VAR}` is put in when it starts; may be given several times
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,
    /// A header of each request to the address; may be given several times
    #[arg(long, value_name = "NAME: VALUE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// Where the program is started
    #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "image"])]
    pub(crate) cwd: Option<String>,
    /// Add it switched off
    #[arg(long)]
    pub(crate) disabled: bool,
    /// Only for the one user who needs no login, in place of everyone
    #[arg(long)]
    pub(crate) mine: bool,
}

/// Resources of an MCP server.
#[derive(Debug, Args)]
pub(crate) struct McpResources {
    /// The server's name
    pub(crate) name: String,
    /// The address of the resource that is read
    pub(crate) uri: Option<String>,
    /// Read it again whenever the server says that it changed
    #[arg(long, requires = "uri")]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) listed: Listed,
}

/// Prompts of an MCP server.
#[derive(Debug, Args)]
pub(crate) struct McpPrompts {
    /// The server's name
    pub(crate) name: String,
    /// The prompt's name
    pub(crate) prompt: Option<String>,
    /// What it is given
    #[arg(value_name = "NAME=VALUE")]
    pub(crate) arguments: Vec<String>,
    #[command(flatten)]
    pub(crate) listed: Listed,
}

/// Models.
#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// List the models of all providers
    List(Listed),
    /// Ask a model and its endpoint what they can do, with a dozen small questions
    Check {
        /// The model, PROVIDER/MODEL; the default one where not given
        model: Option<ModelRef>,
        #[command(flatten)]
        listed: Listed,
    },
}

/// Conversations.
#[derive(Debug, Subcommand)]
pub(crate) enum Conversations {
    /// List conversations, the one that was used last first
    List {
        /// The most that are listed
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
        #[command(flatten)]
        listed: Listed,
    },
    /// Find conversations by what was said in them, or by their titles
    Search {
        /// Words: all of them in one message, or in a title
        #[arg(required = true, value_name = "WORD")]
        words: Vec<String>,
        /// The most that are listed
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        #[command(flatten)]
        listed: Listed,
    },
    /// Show a conversation's messages
    Show {
        /// Its name
        id: ConversationId,
        #[command(flatten)]
        listed: Listed,
    },
    /// Print a conversation's messages in another's form: a JSON list
    Export {
        /// Its name
        id: ConversationId,
        /// The form
        #[arg(long, value_name = "FORM", default_value = "openai")]
        format: ExportFormat,
    },
    /// Take conversations over from a file: OpenAI's messages, or an export of ChatGPT, Claude, Open WebUI or LibreChat
    Import {
        /// The file, JSON; `-` for standard input
        file: PathBuf,
        #[command(flatten)]
        listed: Listed,
    },
    /// Make a conversation of what another holds, all of it or up to a message; the other stays as it is
    Fork {
        /// Its name
        id: ConversationId,
        /// The message before which the copy ends, such as `msg_5`; `conversations show ID --json` names them
        #[arg(long, value_name = "MESSAGE")]
        at: Option<MessageId>,
        #[command(flatten)]
        listed: Listed,
    },
    /// Stop a conversation's open turn, also one that a process left behind
    Stop {
        /// Its name
        id: ConversationId,
    },
    /// Put a summary in the place of a conversation's beginning, for the model; nothing is deleted
    Compact {
        /// Its name
        id: ConversationId,
        /// The model that writes it; the conversation's own unless said otherwise
        #[arg(long, value_name = "PROVIDER/MODEL", conflicts_with = "undo")]
        model: Option<ModelRef>,
        /// Take the newest summary back
        #[arg(long)]
        undo: bool,
        #[command(flatten)]
        listed: Listed,
    },
    /// Delete a conversation
    Delete {
        /// Its name
        id: ConversationId,
        /// Overwrite what is deleted wherever the database still has it
        #[arg(long)]
        purge: bool,
    },
}

/// The forms of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "kebab-case")]
pub(crate) enum ExportFormat {
    /// Chat Completions messages
    #[value(name = "openai")]
    OpenAi,
    /// Anthropic's messages
    Anthropic,
    /// Gemini's contents
    Gemini,
    /// The AI SDK's model messages
    AiSdk,
    /// The AI SDK's UI messages
    AiSdkUi,
}

impl From<ExportFormat> for ExportForm {
    fn from(format: ExportFormat) -> Self {
        match format {
            ExportFormat::OpenAi => Self::OpenAi,
            ExportFormat::Anthropic => Self::Anthropic,
            ExportFormat::Gemini => Self::Gemini,
            ExportFormat::AiSdk => Self::AiSdk,
            ExportFormat::AiSdkUi => Self::AiSdkUi,
        }
    }
}

/// The configuration.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum Config {
    /// Print what counts, where it comes from, without secrets
    Show,
    /// Say what is wrong with it
    Check,
    /// Print which file counts
    Path,
    /// Print its JSON Schema
    Schema,
}

/// Reads the command line.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(words)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

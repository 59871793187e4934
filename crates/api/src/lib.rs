//! Types of the HTTP API: the only JSON that is promised to clients.
//!
//! Names and shapes are fixed here and nowhere else, whatever the model of a conversation looks like inside. Requests refuse
//! fields that they do not know, so that a misspelt one is heard of. What is not here: how these values come about, which is
//! the doors' work, and status codes, which are the server's.
//! [`openai`] has the forms of OpenAI's APIs, whose names are theirs.

mod artifact;
mod budget;
mod call;
mod chat;
mod context;
mod conversation;
mod knowledge;
mod list;
mod mcp;
mod mcp_feature;
mod message;
mod model;
mod object;
pub mod openai;
mod patch;
mod problem;
mod question;
mod rule;
mod settings;
mod tool;
mod turn;
mod usage;
mod user;

pub use artifact::Artifact;
pub use budget::{Budget, BudgetAmount, BudgetLimit, BudgetStop};
pub use call::{AlsoDecided, Call, DecisionAnswer, DecisionRequest, DecisionVerdict, ToolCallAnswer, ToolCallRequest};
pub use chat::{
    CancelRequest, ChatAnswer, ChatRequest, CompactRequest, CompactionReport, Content, ForkRequest, MessageAccepted,
    MessageRequest, OnWaiting, RetryRequest, Summary, TurnAccepted,
};
pub use context::{ContextKind, ContextPart, ContextPlace};
pub use conversation::{Conversation, ConversationPatch, ConversationRequest, Excerpt, TurnSummary};
pub use knowledge::{Knowledge, KnowledgeAnswer, KnowledgeDocument, KnowledgePiece, Memory};
pub use list::List;
pub use mcp::{McpLogLine, McpProtocol, McpServer, McpServerRequest, McpSignIn};
pub use mcp_feature::{
    McpApp, McpAppCallAnswer, McpAppCallRequest, McpAppRequest, McpArgument, McpCompleteRequest, McpCompletion,
    McpCompletionContext, McpContent, McpContents, McpPrompt, McpPromptArgument, McpPromptMessage, McpPromptMessages,
    McpPromptRequest, McpReadRequest, McpReference, McpResource, McpResourceTemplate,
};
pub use message::{Function, Message, Role, ToolCall, ToolCallType};
pub use model::{Health, LongPromptPrices, Model, Models, Prices, Readiness, UnavailableProvider};
pub use patch::Patch;
pub use problem::{FieldError, PROBLEM_CONTENT_TYPE, Problem};
pub use question::{AnswerAction, AnswerReceipt, AnswerRequest, Question, Sampling, SamplingMessage};
pub use rule::{
    ExplainRequest, ExplainedAction, Explanation, MatchedRule, Remember, Rule, RuleAction, RuleRequest, RuleScope, RuleText,
};
pub use settings::{Approve, OutputFormat, OutputSchema, OutputWord, ReasoningEffort, Settings, SettingsPatch, ToolChoice};
pub use tool::{ConversationTool, Icon, SetAsideTool, Tool, ToolAgreement, ToolList, ToolName};
pub use turn::{TurnError, TurnReport, Usage};
pub use usage::{AddedProvider, Provider, ProviderRequest, ToolUsageLine, TurnsLine, UsageLine, UsageReport, UserUsageLine};
pub use user::{Caller, NewToken, SignInLink, Token, TokenRequest, User, UserPatch, UserRequest};

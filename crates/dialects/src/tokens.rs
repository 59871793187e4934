//! How long a prompt is for a model, in tokens.
//!
//! With OpenAI's own tokenizers where the model is one of theirs, since these are published; elsewhere by an estimate over the
//! kinds of letters. What an API adds to a prompt of its own (the frame of a message, the words with which it explains tools)
//! is known for none and estimated for all. `tests/wire/tokens.rs` measures both against the usage of recorded answers.

use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};
use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{AssistantBlock, ContentBlock, TokenCounting};

/// The most text of a prompt that is counted, in bytes; the rest is as dense as that.
const MAX_COUNTED_BYTES: usize = 1 << 20;
/// Texts are counted in pieces of about so many bytes: one endless word would take long.
const PIECE_BYTES: usize = 4 << 10;
/// What an image, a sound or a page-long file costs, about: each API has a table of its own.
const MEDIA_TOKENS: f64 = 1_200.0;

/// What an API makes of a prompt besides its text.
#[derive(Debug, Clone, Copy)]
struct Frame {
    /// How many tokens a text is to one of the estimate.
    text: f64,
    /// The same for definitions, which some APIs write otherwise than as JSON.
    definitions: f64,
    /// For each message.
    message: f64,
    /// Once, where there are tools.
    tools: f64,
}

const OPENAI: Frame = Frame { text: 1.0, definitions: 0.6, message: 4.0, tools: 40.0 };
const ANTHROPIC: Frame = Frame { text: 1.15, definitions: 1.1, message: 4.0, tools: 480.0 };
const GEMINI: Frame = Frame { text: 1.0, definitions: 0.7, message: 2.0, tools: 0.0 };
const OTHERS: Frame = Frame { text: 1.05, definitions: 1.0, message: 4.0, tools: 90.0 };

/// By what the tokens of a model are counted.
pub fn token_counting(model: &str) -> TokenCounting {
    let name = model.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let is_one = |names: &[&str]| names.iter().any(|known| name.starts_with(known));
    if is_one(&["gpt-4o", "gpt-4.", "gpt-5", "gpt-6", "gpt-oss", "chatgpt-", "o1", "o3", "o4"]) {
        TokenCounting::O200k
    } else if is_one(&["gpt-4", "gpt-3.5"]) {
        TokenCounting::Cl100k
    } else {
        TokenCounting::Estimated
    }
}

/// About how many tokens a prompt is for `model`, over an API of this dialect.
pub fn measure(dialect: &str, model: &str, prompt: &Prompt<'_>) -> u64 {
    let counting = token_counting(model);
    let frame = match counting {
        TokenCounting::O200k | TokenCounting::Cl100k => OPENAI,
        TokenCounting::Estimated if dialect == "anthropic" || model.contains("claude") => ANTHROPIC,
        TokenCounting::Estimated if dialect == "gemini" || model.contains("gemini") => GEMINI,
        TokenCounting::Estimated => OTHERS,
    };
    let mut counter = Counter { tokenizer: tokenizer(counting), bytes: 0, tokens: 0.0 };
    let mut text = counter.text(prompt.settings.system_prompt.as_deref().unwrap_or_default());
    for message in &prompt.messages {
        text += frame.message + counter.message(message);
    }
    let mut definitions = 0.0;
    for tool in prompt.tools {
        definitions += counter.text(&tool.name) + counter.text(&tool.described());
        definitions += counter.text(&tool.input_schema.to_string()) + 8.0;
    }
    let fixed = if prompt.tools.is_empty() { 0.0 } else { frame.tools };
    whole(text * frame.text + definitions * frame.definitions + fixed)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a length is neither negative nor that long")]
fn whole(tokens: f64) -> u64 {
    tokens.max(0.0).round() as u64
}

fn tokenizer(counting: TokenCounting) -> Option<&'static CoreBPE> {
    match counting {
        TokenCounting::O200k => Some(o200k_base_singleton()),
        TokenCounting::Cl100k => Some(cl100k_base_singleton()),
        TokenCounting::Estimated => None,
    }
}

/// Counts the texts of a prompt, one after the other.
struct Counter {
    tokenizer: Option<&'static CoreBPE>,
    /// How much the tokenizer has counted, and how many tokens that were.
    bytes: usize,
    tokens: f64,
}

#[expect(clippy::cast_precision_loss, reason = "no text is so long that it matters")]
impl Counter {
    fn text(&mut self, text: &str) -> f64 {
        let Some(tokenizer) = self.tokenizer else { return estimate(text) };
        let mut tokens = 0.0;
        let mut rest = text;
        while !rest.is_empty() {
            if self.bytes >= MAX_COUNTED_BYTES {
                return tokens + rest.len() as f64 * self.tokens / self.bytes as f64;
            }
            let (piece, after) = rest.split_at(piece_of(rest));
            let counted = tokenizer.count_ordinary(piece) as f64;
            self.bytes = self.bytes.saturating_add(piece.len());
            self.tokens += counted;
            tokens += counted;
            rest = after;
        }
        tokens
    }

    fn message(&mut self, message: &PromptMessage<'_>) -> f64 {
        match message {
            PromptMessage::User { message, .. } => self.content(&message.content),
            PromptMessage::Context { context, .. } => self.text(&context.text),
            PromptMessage::Assistant { message, .. } => message.blocks.iter().map(|block| self.block(block)).sum(),
            PromptMessage::Results(results) => results.iter().map(|result| 8.0 + self.content(&result.result.content)).sum(),
        }
    }

    fn content(&mut self, content: &[ContentBlock]) -> f64 {
        let mut tokens = 0.0;
        for block in content {
            tokens += match block {
                ContentBlock::Image { .. } | ContentBlock::Audio { .. } => MEDIA_TOKENS,
                ContentBlock::Resource { resource } if resource.blob.is_some() => MEDIA_TOKENS,
                ContentBlock::Text { .. } | ContentBlock::Resource { .. } | ContentBlock::ResourceLink { .. } => {
                    self.text(&block.as_text())
                }
            };
        }
        tokens
    }

    fn block(&mut self, block: &AssistantBlock) -> f64 {
        match block {
            AssistantBlock::Text { text, .. } | AssistantBlock::Refusal { text } | AssistantBlock::Reasoning { text, .. } => {
                self.text(text)
            }
            AssistantBlock::Call(call) => 8.0 + self.text(&call.name) + self.text(&call.arguments),
            // What only its provider reads is mostly base64.
            AssistantBlock::Opaque { native } => native.0.len() as f64 / 4.0,
        }
    }
}

/// Where the first piece of a text ends: behind white space where there is some.
fn piece_of(text: &str) -> usize {
    if text.len() <= PIECE_BYTES {
        return text.len();
    }
    let end = text.floor_char_boundary(PIECE_BYTES);
    let space = text.get(..end).and_then(|piece| piece.rfind(char::is_whitespace)).filter(|space| *space > 0);
    space.unwrap_or(end)
}

/// About how many tokens a text is, by the kinds of its letters: tokenizers of today have one token for a usual word, fewer
/// letters to a token in long ones and in numbers, and about one for each sign that is no letter, or no Latin one.
#[expect(clippy::cast_precision_loss, reason = "no word is so long that it matters")]
fn estimate(text: &str) -> f64 {
    let (mut tokens, mut run, mut kind) = (0.0, 0_usize, Kind::Other);
    let closed = |kind: Kind, run: usize| match kind {
        Kind::Letter if run > 0 => (run as f64 / 5.5).max(1.0),
        Kind::Digit if run > 0 => (run as f64 / 2.5).max(1.0),
        Kind::Letter | Kind::Digit | Kind::Other => 0.0,
    };
    for letter in text.chars() {
        let (next, alone) = match letter {
            'a'..='z' | 'A'..='Z' => (Kind::Letter, 0.0),
            '0'..='9' => (Kind::Digit, 0.0),
            ' ' => (Kind::Other, 0.0),
            '\n' | '\t' | '\r' => (Kind::Other, 0.5),
            other if other.is_ascii() => (Kind::Other, 0.75),
            _ => (Kind::Other, 0.9),
        };
        if next != kind {
            tokens += closed(kind, run);
            (kind, run) = (next, 0);
        }
        run = run.saturating_add(1);
        tokens += alone;
    }
    tokens + closed(kind, run)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Digit,
    Other,
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "no text of a test is so long that it matters")]
mod tests {
    use super::*;

    #[test]
    fn openais_models_are_counted_by_their_own_tokenizers_under_any_name_of_theirs() {
        for model in ["gpt-4o", "openai/gpt-4.1-mini", "gpt-5-mini-2025-08-07", "o3", "gpt-oss:120b", "chatgpt-4o-latest"] {
            assert_eq!(token_counting(model), TokenCounting::O200k, "{model}");
        }
        assert_eq!(token_counting("gpt-4-turbo"), TokenCounting::Cl100k);
        assert_eq!(token_counting("gpt-3.5-turbo"), TokenCounting::Cl100k);
        for model in ["claude-opus-4", "gemini-2.5-pro", "qwen3", ""] {
            assert_eq!(token_counting(model), TokenCounting::Estimated, "{model}");
        }
    }

    #[test]
    fn a_text_in_pieces_is_as_long_as_the_whole_and_an_endless_word_takes_no_longer() {
        let mut counter = Counter { tokenizer: tokenizer(TokenCounting::Cl100k), bytes: 0, tokens: 0.0 };
        let text = "The quick brown fox jumps over the lazy dog. ".repeat(1_000);
        let whole = cl100k_base_singleton().count_ordinary(&text) as f64;
        let sum = counter.text(&text);
        assert!((sum - whole).abs() / whole < 0.005, "{sum} of {whole}");
        assert!(counter.text(&"x".repeat(3 << 20)) > 100_000.0, "what is not counted any more is estimated");
    }

    #[test]
    fn an_estimate_is_near_what_a_tokenizer_counts_for_prose_code_and_other_scripts() {
        let rust = include_str!("tokens.rs");
        let prose = "Whoever wants to know where a turn is reads the list; there is no second place that could say otherwise.";
        let cjk = "对话只是一个列表，只会增加，不会改变。";
        for text in [rust, prose, cjk] {
            let counted = o200k_base_singleton().count_ordinary(text) as f64;
            let estimated = estimate(text);
            assert!(
                (0.6..=1.6).contains(&(estimated / counted)),
                "{estimated} for {counted}: {}",
                text.chars().take(40).collect::<String>()
            );
        }
    }
}

//! What a model answers: pieces that no vendor owns, sent in the speaker's own stream and decoded by its dialect.

use turnwright_core::{
    Assembler, AssistantBlock, AssistantMessage, Completion, CutOffCause, FinishReason, ProviderFailure, Seq,
};
use turnwright_dialects::{Offered, ReplyDecoder};

use super::endpoint::Endpoint;
use super::features::Features;
use super::random::Random;

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

/// A piece of an answer.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(String),
    Thought(String),
    /// A thought that only its vendor reads.
    Sealed,
    Refusal(String),
    Call(Call),
    /// A tool that the vendor runs itself.
    Own,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// How an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Stop,
    Length,
    Filter,
    Refusal,
    Pause,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) end: End,
}

impl Answer {
    /// Whether there is no word for people in it and no call, which some take for a failure.
    fn says_nothing(&self) -> bool {
        let is_said = |piece: &Piece| match piece {
            Piece::Text(text) | Piece::Refusal(text) => !text.is_empty(),
            Piece::Call(_) => true,
            Piece::Thought(_) | Piece::Sealed | Piece::Own => false,
        };
        !self.pieces.iter().any(is_said)
    }

    pub(crate) fn has_calls(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Call(_)))
    }
}

/// Text as JSON.
pub(crate) fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// The answer of `speaker`, from its own bytes.
pub(crate) fn answer(
    random: &mut Random,
    features: &mut Features,
    speaker: &Endpoint,
    tools: &[&str],
    saw: Seq,
) -> AssistantMessage {
    let answer = think_of(random, features, tools);
    let is_cut = random.percent(8);
    let mut message = hear(random, speaker, &answer, is_cut, saw);
    if message.completion == Completion::Complete && random.percent(1) {
        message.completion = Completion::CutOff(CutOffCause::Provider(Box::new(ProviderFailure::cut_off())));
    }
    note(&message, features);
    message
}

/// An answer in which nothing is wrong: two calls, or words alone.
pub(crate) fn calm(
    random: &mut Random,
    speaker: &Endpoint,
    tools: &[String],
    calls: bool,
    saw: Seq,
    turn: usize,
) -> AssistantMessage {
    let mut pieces = vec![Piece::Thought("I should look.".to_owned()), Piece::Text(format!("In turn {turn} I look."))];
    for name in tools.iter().take(if calls { 2 } else { 0 }) {
        let id = Some(format!("call_{:x}", random.next()));
        pieces.push(Piece::Call(Call { id, name: name.clone(), arguments: format!("{{\"path\":\"/tmp/{turn}\"}}") }));
    }
    hear(random, speaker, &Answer { pieces, end: End::Stop }, false, saw)
}

fn hear(random: &mut Random, speaker: &Endpoint, answer: &Answer, is_cut: bool, saw: Seq) -> AssistantMessage {
    let (content_type, body) = match speaker.dialect.name() {
        "openai-chat" => ("text/event-stream", chat::write(answer, random, &speaker.origin.provider)),
        "openai-responses" => ("text/event-stream", responses::write(answer, random)),
        "anthropic" => ("text/event-stream", anthropic::write(answer, random)),
        "gemini" => ("text/event-stream", gemini::write(answer, random)),
        "ollama" => ("application/x-ndjson", ollama::write(answer)),
        other => panic!("nobody speaks {other} here"),
    };
    let end = if is_cut { random.below(body.len()) } else { body.len() };
    let mut reply = ReplyDecoder::new(speaker.dialect.decoder(speaker.profile(), &Offered::default()), Some(content_type));
    let mut deltas = Vec::new();
    let mut said = reply.push(&body.as_bytes()[..end], &mut deltas);
    if said.is_ok() {
        said = reply.end(&mut deltas);
    }
    let mut assembler = Assembler::default();
    for delta in deltas {
        assembler.push(delta);
    }
    match said {
        Ok(()) => assembler.complete(speaker.origin.clone(), saw),
        Err(failure) => {
            let may_fail = is_cut || answer.says_nothing();
            assert!(may_fail, "{} refuses its own words: {failure}\n{body}", speaker.dialect.name());
            assembler.cut_off(speaker.origin.clone(), saw, CutOffCause::Provider(Box::new(failure)))
        }
    }
}

fn note(message: &AssistantMessage, features: &mut Features) {
    for block in &message.blocks {
        match (block, &*message.origin.dialect) {
            (AssistantBlock::Reasoning { native: Some(_), .. }, "openai-chat") => features.saw("reasoning of openai-chat"),
            (AssistantBlock::Reasoning { native: Some(_), .. }, "openai-responses") => {
                features.saw("reasoning of openai-responses");
            }
            (AssistantBlock::Reasoning { native: Some(_), .. }, "anthropic") => features.saw("reasoning of anthropic"),
            (AssistantBlock::Reasoning { native: Some(_), .. }, "gemini") => features.saw("reasoning of gemini"),
            (AssistantBlock::Opaque { .. }, _) => features.saw("a block that only its provider understands"),
            (AssistantBlock::Refusal { .. }, _) => features.saw("a refusal"),
            _ => {}
        }
    }
    let calls = message.calls().count();
    match message.finish.reason {
        FinishReason::Length if calls > 0 => features.saw("a length limit in the middle of calls"),
        FinishReason::Length => features.saw("a length limit"),
        FinishReason::ContentFilter => features.saw("a content filter"),
        FinishReason::Pause => features.saw("a pause of the provider"),
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Refusal | FinishReason::Error => {}
    }
    if message.blocks.is_empty() {
        features.saw("an answer of nothing");
    } else if message.blocks.iter().all(|block| matches!(block, AssistantBlock::Reasoning { .. })) {
        features.saw("an answer of reasoning alone");
    }
}

fn think_of(random: &mut Random, features: &mut Features, tools: &[&str]) -> Answer {
    const THOUGHTS: [&str; 4] = ["I should look.", "", "Hm \"so\"\n", "日本"];
    const SAID: [&str; 6] = ["Let me look.", "Done: 12 °C", " ", "\n\nwell", "ends with spaces  ", "\"quoted\" \\ 🦀"];
    let mut pieces = Vec::new();
    if random.percent(45) {
        pieces.push(Piece::Thought((*random.pick(&THOUGHTS)).to_owned()));
    }
    if random.percent(15) {
        pieces.push(Piece::Sealed);
    }
    let mut end = match random.below(40) {
        0..3 => End::Length,
        3 => End::Filter,
        4 => End::Refusal,
        5 => End::Pause,
        _ => End::Stop,
    };
    if random.percent(60) {
        pieces.push(Piece::Text((*random.pick(&SAID)).to_owned()));
    }
    if random.percent(8) || end == End::Pause {
        pieces.push(Piece::Own);
    }
    let calls = match end {
        End::Pause => 0,
        _ if random.percent(65) => *random.pick(&[1, 1, 2, 3]),
        _ => 0,
    };
    for _ in 0..calls {
        pieces.push(Piece::Call(call(random, features, tools)));
        if random.percent(15) {
            pieces.push(Piece::Thought("Again.".to_owned()));
        }
        if random.percent(15) {
            pieces.push(Piece::Text((*random.pick(&SAID)).to_owned()));
        }
    }
    if end == End::Refusal {
        pieces.retain(|piece| !matches!(piece, Piece::Call(_)));
        pieces.push(Piece::Refusal("I cannot help with that.".to_owned()));
    }
    if pieces.is_empty() && random.percent(70) {
        pieces.push(Piece::Text("Yes.".to_owned()));
        end = End::Stop;
    }
    Answer { pieces, end }
}

fn call(random: &mut Random, features: &mut Features, tools: &[&str]) -> Call {
    const STRANGE: [&str; 7] =
        ["gone__tool", "fs.read/file name", "日本語", "1starts_with_a_digit", "", "functions.f:0", "a b\n\"c\""];
    const ARGUMENTS: [&str; 5] = [
        "{}",
        "{\"path\":\"/tmp/ü\"}",
        "{\"a\":{\"b\":[1,2.5,null,true]},\"t\":\"x\\\"y\"}",
        "{ \"n\" : 1 }",
        "{\"path\":1e2}",
    ];
    const BROKEN: [&str; 8] = ["{\"path\":\"/tm", "", "[1]", "null", "\"{}\"", "{}}", "not json", "{\"n\":1e999}"];
    let name = if tools.is_empty() || random.percent(15) {
        features.saw("an unknown tool name with strange characters");
        if random.percent(20) { "x".repeat(200) } else { (*random.pick(&STRANGE)).to_owned() }
    } else {
        (*random.pick(tools)).to_owned()
    };
    let arguments = if random.percent(15) {
        features.saw("arguments that are not a JSON object");
        *random.pick(&BROKEN)
    } else {
        *random.pick(&ARGUMENTS)
    };
    let number = random.next() % 1_000_000_000;
    let id = match random.below(20) {
        0 | 1 => {
            features.saw("a provider id that repeats");
            Some("repeated".to_owned())
        }
        2 => {
            features.saw("a missing provider id");
            None
        }
        3 => {
            features.saw("an overlong provider id");
            Some(format!("{}{number}", "long-".repeat(40)))
        }
        4 => {
            features.saw("a provider id with strange characters");
            Some(format!("functions.f:{number} ü"))
        }
        5 => {
            features.saw("a provider id that looks like ours");
            Some(format!("call_{}_0", number % 12 + 1))
        }
        6 => Some(String::new()),
        7 => Some(format!("{number:09}")),
        _ => Some(format!("call_{number:x}")),
    };
    Call { id, name, arguments: arguments.to_owned() }
}

/// Arguments as the JSON value that wires without text arguments send.
pub(crate) fn arguments_value(text: &str) -> &str {
    if serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok() { text } else { "{}" }
}

//! Names that a model invented: a past call goes back under a name that its API takes.

use turnwright_core::prompt::{Prompt, PromptMessage, PromptResult, ShownResult};
use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Completion, ContentBlock, Finish, FinishReason, ModelRef, Outcome, Seq, ToolCall,
    ToolResult, TurnSettings, Usage, UserMessage,
};
use turnwright_dialects::Kept;

use super::endpoint;
use super::random::Random;

fn name(random: &mut Random) -> String {
    const PIECES: [&str; 18] = [
        "server",
        "__",
        "read",
        ".",
        "/",
        " ",
        "日本",
        "é",
        "-",
        "_",
        "1",
        "A",
        ":",
        "\"",
        "\\",
        "\n",
        "🦀",
        "tool-with-a-long-name",
    ];
    (0..random.below(9)).map(|_| *random.pick(&PIECES)).collect()
}

#[test]
fn ten_thousand_invented_names_are_mended_so_that_every_api_takes_them() {
    let settings = TurnSettings::new(ModelRef::new("p", "m"));
    let mut random = Random::new(11);
    let hello = UserMessage { content: vec![ContentBlock::text("Hello")], settings: settings.clone() };
    for _ in 0..100 {
        let blocks = (0..100).map(|number| {
            AssistantBlock::Call(ToolCall {
                name: name(&mut random),
                arguments: "{}".to_owned(),
                provider_id: Some(format!("call_x{number}")),
                native: None,
                recovered: false,
            })
        });
        let blocks: Vec<_> = blocks.collect();
        for endpoint in endpoint::all() {
            let message = AssistantMessage {
                origin: endpoint.origin.clone(),
                saw: Seq::FIRST,
                blocks: blocks.clone(),
                finish: Finish { reason: FinishReason::ToolCalls, raw: None },
                completion: Completion::Complete,
                usage: Usage::default(),
            };
            let seq = Seq::FIRST.next();
            let results = message.calls().zip(0..).map(|(call, index)| {
                let id = CallId { message: seq, index };
                let result = ShownResult::from(ToolResult::of(id, Outcome::Success, "done"));
                PromptResult { id, call, result, edit: None, nudge: None }
            });
            let messages = vec![
                PromptMessage::User { seq: Seq::FIRST, message: &hello },
                PromptMessage::Assistant { seq, message: &message },
                PromptMessage::Results(results.collect()),
            ];
            let prompt = Prompt {
                conversation: None,
                settings: &settings,
                messages,
                tools: &[],
                allow_calls: true,
                has_open_demand: false,
            };
            let request = endpoint.request(&prompt, &mut Kept::default());
            assert_eq!(endpoint.refuses(&request), Vec::<String>::new(), "{:?}", endpoint.origin);
        }
    }
}

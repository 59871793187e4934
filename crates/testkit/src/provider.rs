//! A provider that answers by script and remembers what it was asked.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::StreamExt;
use tokio::sync::Semaphore;
use turnwright_core::prompt::{Prompt, PromptMessage};
use turnwright_core::{
    ConversationId, Finish, FinishReason, ModelFacts, ProviderFailure, ProviderFailureKind, StreamDelta, ToolChoice, Usage,
    text_of,
};
use turnwright_engine::{ModelInfo, ModelStream, Provider, Providers};

/// One scripted answer.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    batches: Vec<Vec<StreamDelta>>,
    failure: Option<ProviderFailure>,
    gate: Option<Arc<Semaphore>>,
}

impl Answer {
    /// An answer of these batches of deltas.
    pub fn of(batches: impl IntoIterator<Item = Vec<StreamDelta>>) -> Self {
        Self { batches: batches.into_iter().collect(), ..Self::default() }
    }

    /// An answer of one batch: these deltas and a finish that fits them.
    pub fn whole(deltas: impl IntoIterator<Item = Vec<StreamDelta>>) -> Self {
        let mut batch: Vec<StreamDelta> = deltas.into_iter().flatten().collect();
        let calls = batch.iter().any(|delta| matches!(delta, StreamDelta::CallStarted { .. }));
        let reason = if calls { FinishReason::ToolCalls } else { FinishReason::Stop };
        batch.push(StreamDelta::Usage(Usage { input_tokens: Some(10), output_tokens: Some(5), ..Usage::default() }));
        batch.push(StreamDelta::Finished(Finish { reason, raw: None }));
        Self::of([batch])
    }

    /// The same, ending with this failure.
    #[must_use]
    pub fn failing(mut self, failure: ProviderFailure) -> Self {
        self.failure = Some(failure);
        self
    }

    /// The same, each batch after one permit of `gate`; the end after one more.
    #[must_use]
    pub fn gated(mut self, gate: &Arc<Semaphore>) -> Self {
        self.gate = Some(gate.clone());
        self
    }
}

/// A text.
pub fn text(text: &str) -> Vec<StreamDelta> {
    vec![StreamDelta::Text(text.to_owned())]
}

/// A call with these arguments, JSON text, arriving in two pieces.
pub fn call(key: u32, name: &str, arguments: &str) -> Vec<StreamDelta> {
    let (first, second) = arguments.split_at_checked(arguments.len() / 2).unwrap_or((arguments, ""));
    vec![
        StreamDelta::CallStarted { key, name: name.to_owned(), provider_id: Some(format!("p{key}")) },
        StreamDelta::CallArguments { key, text: first.to_owned() },
        StreamDelta::CallArguments { key, text: second.to_owned() },
    ]
}

type Rule = Box<dyn Fn(&str) -> Answer + Send + Sync>;

/// Answers in order, whatever it is asked, and fails once the script is over; or answers by what it is asked.
#[derive(Default)]
pub struct ScriptedProvider {
    answers: Mutex<VecDeque<Answer>>,
    rule: Option<Rule>,
    asked: Mutex<Vec<String>>,
    demanded: Mutex<Vec<ToolChoice>>,
    forgotten: Mutex<Vec<ConversationId>>,
    max_tools: Option<usize>,
}

impl ScriptedProvider {
    /// A provider that gives these answers.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), ..Self::default() })
    }

    /// A provider that gives these answers and takes no more than `most` tools.
    pub fn with_few_tools(most: usize, answers: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        let answers = Mutex::new(answers.into_iter().collect());
        Arc::new(Self { answers, max_tools: Some(most), ..Self::default() })
    }

    /// A provider that answers each prompt, described as in [`ScriptedProvider::asked`], by this rule.
    pub fn by(rule: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { rule: Some(Box::new(rule)), ..Self::default() })
    }

    /// What each prompt demanded that it call.
    pub fn demanded(&self) -> Vec<ToolChoice> {
        self.demanded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The conversations of which it was to keep nothing any more.
    pub fn forgotten(&self) -> Vec<ConversationId> {
        self.forgotten.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it was asked, each prompt as lines of `user: …`, `assistant: … [calls]`, `result: …`, and whether it might call.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for ScriptedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedProvider").field("asked", &self.asked).finish_non_exhaustive()
    }
}

#[async_trait]
impl Provider for ScriptedProvider {
    fn dialect(&self) -> &'static str {
        "scripted"
    }

    fn call(&self, _model: &str, prompt: &Prompt<'_>) -> Result<ModelStream, ProviderFailure> {
        let asked = describe(prompt);
        let answer = match &self.rule {
            Some(rule) => Some(rule(&asked)),
            None => self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front(),
        };
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        self.demanded.lock().unwrap_or_else(PoisonError::into_inner).push(prompt.tool_choice());
        let Some(answer) = answer else {
            return Err(ProviderFailure::new(ProviderFailureKind::Server, "the script is over"));
        };
        let gate = answer.gate;
        let items = answer.batches.into_iter().map(Ok).chain(answer.failure.map(Err)).map(Some).chain([None]);
        let stream = futures_util::stream::iter(items).then(move |item| {
            let gate = gate.clone();
            async move {
                if let Some(gate) = gate
                    && let Ok(permit) = gate.acquire().await
                {
                    permit.forget();
                }
                item
            }
        });
        Ok(Box::pin(stream.take_while(|item| std::future::ready(item.is_some())).filter_map(std::future::ready)))
    }

    fn forget(&self, conversation: &ConversationId) {
        self.forgotten.lock().unwrap_or_else(PoisonError::into_inner).push(conversation.clone());
    }

    fn max_tools(&self) -> Option<usize> {
        self.max_tools
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ProviderFailure> {
        Ok(vec![ModelInfo { id: "scripted".to_owned(), description: None, facts: ModelFacts::default() }])
    }
}

fn describe(prompt: &Prompt<'_>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for message in &prompt.messages {
        match message {
            PromptMessage::User { message: user, .. } => lines.push(format!("user: {}", text_of(&user.content))),
            PromptMessage::Context { context, .. } => lines.push(format!("context: {}", context.text)),
            PromptMessage::Assistant { message, .. } => {
                let calls: Vec<&str> = message.calls().map(|call| call.name.as_str()).collect();
                lines.push(format!("assistant: {} [{}]", message.text(), calls.join(", ")));
            }
            PromptMessage::Results(results) => lines.extend(results.iter().map(|result| format!("result: {}", result.text()))),
        }
    }
    if !prompt.allow_calls {
        lines.push("no calls".to_owned());
    }
    lines.join("\n")
}

/// One provider under the name `test`.
#[derive(Debug)]
pub struct ScriptedProviders(pub Arc<dyn Provider>);

impl Providers for ScriptedProviders {
    fn get(&self, name: &str) -> Result<Arc<dyn Provider>, ProviderFailure> {
        if name == "test" {
            Ok(self.0.clone())
        } else {
            let text = format!("there is no provider `{name}`; there is `test`");
            Err(ProviderFailure::new(ProviderFailureKind::Unavailable, text))
        }
    }

    fn names(&self) -> Vec<String> {
        vec!["test".to_owned()]
    }
}

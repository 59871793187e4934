//! A conversation while it is being read, and the journal that becomes of it.

use turnwright_core::{
    AssistantBlock, AssistantMessage, CallId, Completion, ContentBlock, Control, Entry, Finish, FinishReason, Origin, Outcome,
    Seq, ToolCall, ToolErrorKind, ToolResult, TurnId, TurnSettings, TurnStatus, Usage, UserMessage,
};

use super::{ImportedConversation, LeftOut};

/// What is said to be the dialect of messages that came from elsewhere: no provider's, so nothing is taken for its own.
const DIALECT: &str = "import";
/// Opens the first turn where a conversation begins with an answer.
const BEGINNING: &str = "(The conversation begins with an answer.)";
/// The result of a call without one.
const NO_RESULT: &str = "The conversation was imported, and the result of this call was not in the file.";

/// A conversation in the making. Give it what was said in its order.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) source: &'static str,
    pub(super) id: Option<String>,
    pub(super) title: Option<String>,
    pub(super) pinned: bool,
    pub(super) created_at_ms: Option<u64>,
    /// The model of answers that name none.
    pub(super) model: Option<String>,
    system: Vec<String>,
    items: Vec<Item>,
    left_out: LeftOut,
}

#[derive(Debug)]
enum Item {
    User { content: Vec<ContentBlock>, at_ms: Option<u64> },
    Step(Step),
}

/// What a model said, and the results of its calls in call order.
#[derive(Debug)]
struct Step {
    model: Option<String>,
    at_ms: Option<u64>,
    blocks: Vec<AssistantBlock>,
    results: Vec<Option<Given>>,
}

/// The result of a call.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) content: Vec<ContentBlock>,
    pub(super) failed: bool,
    pub(super) at_ms: Option<u64>,
}

impl Draft {
    pub(super) fn new(source: &'static str) -> Self {
        Self {
            source,
            id: None,
            title: None,
            pinned: false,
            created_at_ms: None,
            model: None,
            system: Vec::new(),
            items: Vec::new(),
            left_out: LeftOut::new(),
        }
    }

    /// Counts something that is not taken, or not as it was.
    pub(super) fn leave_out(&mut self, what: &str) {
        *self.left_out.entry(what.to_owned()).or_default() += 1;
    }

    /// As [`Draft::leave_out`], more than once.
    pub(super) fn leave_out_many(&mut self, what: &str, count: usize) {
        if count > 0 {
            *self.left_out.entry(what.to_owned()).or_default() += count;
        }
    }

    /// What the model was told before the conversation.
    pub(super) fn system(&mut self, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        if self.items.is_empty() {
            self.system.push(text.to_owned());
        } else {
            self.leave_out("a system message in the middle");
        }
    }

    /// A person's message; nothing where it is empty.
    pub(super) fn user(&mut self, content: Vec<ContentBlock>, at_ms: Option<u64>) {
        if content.is_empty() {
            self.leave_out("an empty message");
        } else {
            self.items.push(Item::User { content, at_ms });
        }
    }

    /// Begins a message of a model's.
    pub(super) fn answer(&mut self, model: Option<&str>, at_ms: Option<u64>) {
        let model = model.map(str::to_owned);
        self.items.push(Item::Step(Step { model, at_ms, blocks: Vec::new(), results: Vec::new() }));
    }

    /// A message of a model's goes on; or another begins, behind a person's and behind results.
    pub(super) fn go_on(&mut self, model: Option<&str>, at_ms: Option<u64>) {
        if !matches!(self.items.last(), Some(Item::Step(step)) if step.results.iter().all(Option::is_none)) {
            self.answer(model, at_ms);
        }
    }

    /// Adds to the model's message. Behind results another one begins.
    pub(super) fn say(&mut self, block: AssistantBlock) {
        let is_empty = match &block {
            AssistantBlock::Text { text, .. } | AssistantBlock::Reasoning { text, .. } | AssistantBlock::Refusal { text } => {
                text.trim().is_empty()
            }
            AssistantBlock::Call(_) | AssistantBlock::Opaque { .. } => false,
        };
        if is_empty {
            return;
        }
        if let Some(Item::Step(step)) = self.items.last()
            && step.results.iter().any(Option::is_some)
        {
            let (model, at_ms) = (step.model.clone(), step.at_ms);
            self.answer(model.as_deref(), at_ms);
        }
        self.go_on(None, None);
        if let Some(Item::Step(step)) = self.items.last_mut() {
            if matches!(block, AssistantBlock::Call(_)) {
                step.results.push(None);
            }
            step.blocks.push(block);
        }
    }

    /// Text of the model's.
    pub(super) fn text(&mut self, text: &str) {
        self.say(AssistantBlock::Text { text: text.to_owned(), native: None });
    }

    /// A thought of the model's.
    pub(super) fn reasoning(&mut self, text: &str) {
        self.say(AssistantBlock::Reasoning { text: text.to_owned(), native: None });
    }

    /// A call. `arguments` that are no JSON object are kept as they are.
    pub(super) fn call(&mut self, id: Option<&str>, name: &str, arguments: impl Into<String>) {
        self.say(AssistantBlock::Call(ToolCall {
            name: name.to_owned(),
            arguments: arguments.into(),
            provider_id: id.map(str::to_owned),
            native: None,
            recovered: false,
        }));
    }

    /// A result. It goes to the call with its id, else to the oldest open one of its name in the newest step that
    /// has one, else to the oldest open one, else
    /// to a call that is made up for it.
    pub(super) fn result(&mut self, id: Option<&str>, name: Option<&str>, given: Given) {
        if let Some(open) = self.open_call(id, name) {
            *open = Some(given);
            return;
        }
        self.leave_out("a result without its call (shown as a call without arguments)");
        self.call(id, name.unwrap_or("unknown"), "{}");
        if let Some(Item::Step(step)) = self.items.last_mut()
            && let Some(last) = step.results.last_mut()
        {
            *last = Some(given);
        }
    }

    /// The result of the newest call of this name, where there is one since the last message: more may be said in it.
    pub(super) fn newest_result(&mut self, name: &str) -> Option<&mut Given> {
        let Some(Item::Step(step)) = self.items.last_mut() else { return None };
        let position = calls(&step.blocks).iter().rposition(|call| call.name == name)?;
        step.results.get_mut(position)?.as_mut()
    }

    /// The result of the call with this id, in the newest step.
    pub(super) fn result_of(&mut self, id: &str) -> Option<&mut Given> {
        let Some(Item::Step(step)) = self.items.last_mut() else { return None };
        let position = calls(&step.blocks).iter().rposition(|call| call.provider_id.as_deref() == Some(id))?;
        step.results.get_mut(position)?.as_mut()
    }

    fn open_call(&mut self, id: Option<&str>, name: Option<&str>) -> Option<&mut Option<Given>> {
        for item in self.items.iter_mut().rev() {
            let Item::Step(step) = item else { continue };
            let open: Vec<(usize, &ToolCall)> = calls(&step.blocks)
                .into_iter()
                .enumerate()
                .filter(|(at, _)| matches!(step.results.get(*at), Some(None)))
                .collect();
            let by_id = id.and_then(|id| open.iter().find(|(_, call)| call.provider_id.as_deref() == Some(id)));
            let is_named = |call: &ToolCall| Some(call.name.as_str()) == name;
            let found = match id {
                // Ids are what tells; a result with an id that no call has is of none of them.
                Some(_) => by_id,
                None => open.iter().find(|(_, call)| is_named(call)).or(open.first()),
            };
            if let Some(at) = found.map(|(at, _)| *at) {
                return step.results.get_mut(at);
            }
        }
        None
    }

    /// The journal; `None` where nothing is said.
    pub(super) fn build(mut self, settings: &TurnSettings) -> Option<ImportedConversation> {
        self.items.retain(|item| !matches!(item, Item::Step(step) if step.blocks.is_empty()));
        let system_prompt = (!self.system.is_empty()).then(|| self.system.join("\n\n"));
        let mut settings = settings.clone();
        settings.system_prompt = system_prompt.clone().or(settings.system_prompt);
        if matches!(self.items.first()?, Item::Step(_)) {
            self.leave_out("an answer before the first message (a message is put before it)");
            self.items.insert(0, Item::User { content: vec![ContentBlock::text(BEGINNING)], at_ms: self.created_at_ms });
        }
        let messages = self.items.len();
        let source = self.source;
        let mut pen =
            Pen { entries: Vec::new(), times_ms: Vec::new(), at_ms: self.created_at_ms, turn: None, left_out: self.left_out };
        for item in self.items {
            match item {
                Item::User { content, at_ms } => pen.user(source, UserMessage { content, settings: settings.clone() }, at_ms),
                Item::Step(step) => {
                    let model = step.model.clone().or_else(|| self.model.clone()).unwrap_or_else(|| "unknown".to_owned());
                    let origin = Origin { dialect: DIALECT.to_owned(), provider: source.to_owned(), model };
                    pen.step(origin, step);
                }
            }
        }
        pen.end();
        Some(ImportedConversation {
            source,
            id: self.id,
            title: self.title,
            pinned: self.pinned,
            system_prompt,
            created_at_ms: self.created_at_ms.or_else(|| pen.times_ms.iter().find_map(|at_ms| *at_ms)),
            entries: pen.entries,
            times_ms: pen.times_ms,
            messages,
            left_out: pen.left_out,
        })
    }
}

fn calls(blocks: &[AssistantBlock]) -> Vec<&ToolCall> {
    fn call(block: &AssistantBlock) -> Option<&ToolCall> {
        match block {
            AssistantBlock::Call(call) => Some(call),
            AssistantBlock::Text { .. }
            | AssistantBlock::Reasoning { .. }
            | AssistantBlock::Refusal { .. }
            | AssistantBlock::Opaque { .. } => None,
        }
    }
    blocks.iter().filter_map(call).collect()
}

/// Writes entries, each in its place.
struct Pen {
    entries: Vec<Entry>,
    times_ms: Vec<Option<u64>>,
    at_ms: Option<u64>,
    /// The open turn, and how it ends if nothing more comes: what was not answered can be asked again.
    turn: Option<(TurnId, TurnStatus)>,
    left_out: LeftOut,
}

impl Pen {
    /// The place of the next entry.
    fn next(&self) -> Seq {
        u64::try_from(self.entries.len()).ok().and_then(|count| Seq::new(count.saturating_add(1))).unwrap_or(Seq::FIRST)
    }

    fn write(&mut self, entry: Entry, at_ms: Option<u64>) {
        self.at_ms = at_ms.or(self.at_ms);
        self.entries.push(entry);
        self.times_ms.push(self.at_ms);
    }

    fn user(&mut self, source: &str, message: UserMessage, at_ms: Option<u64>) {
        let is_unanswered = matches!(self.entries.last(), Some(Entry::User(_) | Entry::Control(Control::Imported { .. })));
        if is_unanswered {
            self.write(Entry::User(message), at_ms);
            return;
        }
        self.end();
        self.turn = Some((TurnId(self.next()), TurnStatus::Cancelled));
        self.write(Entry::User(message), at_ms);
        self.write(Entry::Control(Control::Imported { source: source.to_owned() }), at_ms);
    }

    fn step(&mut self, origin: Origin, step: Step) {
        let place = self.next();
        let saw = Seq::new(place.get().saturating_sub(1)).unwrap_or(Seq::FIRST);
        let has_calls = !step.results.is_empty();
        let reason = if has_calls { FinishReason::ToolCalls } else { FinishReason::Stop };
        let message = AssistantMessage {
            origin,
            saw,
            blocks: step.blocks,
            finish: Finish { reason, raw: None },
            completion: Completion::Complete,
            usage: Usage::default(),
        };
        self.write(Entry::Assistant(message), step.at_ms);
        for (given, index) in step.results.into_iter().zip(0..) {
            let call = CallId { message: place, index };
            let at_ms = given.as_ref().and_then(|given| given.at_ms);
            let result = if let Some(Given { content, failed, .. }) = given {
                let outcome = if failed { Outcome::Error(ToolErrorKind::ExecutionFailed) } else { Outcome::Success };
                ToolResult { content, ..ToolResult::of(call, outcome, "") }
            } else {
                *self.left_out.entry("a call without a result (it gets a failed one)".to_owned()).or_default() += 1;
                ToolResult::failed(call, ToolErrorKind::Interrupted, NO_RESULT)
            };
            self.write(Entry::Result(result), at_ms);
        }
        if let Some((_, status)) = &mut self.turn {
            *status = if has_calls { TurnStatus::Cancelled } else { TurnStatus::Completed };
        }
    }

    fn end(&mut self) {
        if let Some((turn, status)) = self.turn.take() {
            self.write(Entry::Control(Control::Ended { turn, status }), None);
        }
    }
}

//! What models are shown besides a message: instructions and memory where they are new, and what documents say to it.

use std::fmt::Write as _;

use async_trait::async_trait;
use turnwright_core::{ContextKind, ContextPart};
use turnwright_engine::knowledge::version_of;
use turnwright_engine::{ContextAsk, ContextSource, Gathered};

use crate::instructions::{self, Instruction, Instructions};
use crate::knowledge::{Knowledge, harmless};
use crate::memory::Memory;

/// What stands before instructions and memory.
const STANDING: &str = "What follows holds from here on, until a newer version of it is shown. What the user says in the \
                        conversation comes before it, and of two files the one nearer to what is worked on.";

/// What gathers for every message. What is `None` is switched off.
#[derive(Debug, Default)]
pub struct Gatherer {
    /// Files of instructions.
    pub instructions: Option<Instructions>,
    /// What users had remembered.
    pub memory: Option<Memory>,
    /// Documents.
    pub knowledge: Option<Knowledge>,
    /// Providers whose turns are shown nothing besides: they answer no question.
    pub not_for: Vec<String>,
}

#[async_trait]
impl ContextSource for Gatherer {
    async fn gather(&self, ask: ContextAsk) -> Vec<Gathered> {
        if self.not_for.iter().any(|provider| provider == ask.model.provider()) {
            return Vec::new();
        }
        let instructions = match &self.instructions {
            Some(instructions) => instructions.read().await,
            None => Vec::new(),
        };
        let (memory, mut notices) = match &self.memory {
            Some(memory) => match memory.read(&ask.owner).await {
                Ok(text) => (Some(text), Vec::new()),
                // What cannot be read is not said to be gone.
                Err(error) => (None, vec![format!("the memory could not be read: {error}")]),
            },
            None => (Some(String::new()), Vec::new()),
        };
        let mut standing = standing(&instructions, memory.as_deref(), &ask.standing);
        standing.notices.append(&mut notices);
        let mut gathered = vec![standing];
        if let Some(knowledge) = &self.knowledge {
            gathered.push(knowledge.gather(&ask.conversation, &ask.said, &ask.found).await);
        }
        gathered.retain(|gathered| !gathered.is_empty());
        gathered
    }
}

/// What of instructions and memory is not what the model was shown last, and what of that does not hold any more. Of a memory
/// that is `None` nothing is known.
fn standing(instructions: &[Instruction], memory: Option<&str>, shown: &[ContextPart]) -> Gathered {
    let remembered = memory.filter(|text| !text.is_empty()).map(|text| (memory_part(text), text));
    let new: Vec<&Instruction> = instructions.iter().filter(|instruction| !shown.contains(&instruction.part)).collect();
    let new_memory = remembered.as_ref().filter(|(part, _)| !shown.contains(part));
    let is_there = |part: &ContextPart| {
        let is_it = |other: &ContextPart| (&other.source, &other.document) == (&part.source, &part.document);
        match part.kind {
            ContextKind::Instructions => instructions.iter().any(|instruction| is_it(&instruction.part)),
            ContextKind::Memory => memory.is_none() || remembered.is_some(),
            ContextKind::Knowledge => true,
        }
    };
    let gone: Vec<&ContextPart> = shown.iter().filter(|part| !is_there(part)).collect();
    if new.is_empty() && new_memory.is_none() && gone.is_empty() {
        return Gathered::default();
    }
    let mut text = format!("<context>\n{STANDING}\n");
    instructions::shown(&new, &mut text);
    let mut parts: Vec<ContextPart> = new.iter().map(|instruction| instruction.part.clone()).collect();
    if let Some((part, remembered)) = new_memory {
        // Writing to a string does not fail.
        let _ = write!(text, "\n<memory>\n{}\n</memory>\n", harmless(remembered));
        parts.push(part.clone());
    }
    for part in gone {
        let what = match part.kind {
            ContextKind::Memory => "the memory".to_owned(),
            ContextKind::Instructions | ContextKind::Knowledge => format!("{}/{}", part.source, part.document),
        };
        let _ = write!(text, "\nNo longer there, and no longer to be followed: {}\n", harmless(&what));
        parts.push(ContextPart { version: None, ..part.clone() });
    }
    text.push_str("</context>");
    let notice = |instruction: &&Instruction| {
        let (part, why) = (&instruction.part, instruction.problem.as_ref()?);
        Some(format!("the instructions in `{}/{}` are not shown: {why}", part.source, part.document))
    };
    Gathered { text, parts, notices: new.iter().filter_map(notice).collect() }
}

fn memory_part(text: &str) -> ContextPart {
    let version = Some(version_of(text.as_bytes()));
    ContextPart { kind: ContextKind::Memory, source: "user".to_owned(), document: "memory".to_owned(), place: None, version }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(document: &str, text: &str) -> Instruction {
        let version = Some(version_of(text.as_bytes()));
        let (kind, source) = (ContextKind::Instructions, "/work".to_owned());
        let part = ContextPart { kind, source, document: document.into(), place: None, version };
        Instruction { part, text: text.to_owned(), problem: None }
    }

    #[test]
    fn what_was_shown_is_shown_again_only_where_it_changed() {
        let first = [says("AGENTS.md", "use tabs")];
        let begun = standing(&first, Some("- likes tea"), &[]);
        assert!(begun.text.contains("use tabs") && begun.text.contains("- likes tea"), "{}", begun.text);
        assert_eq!(standing(&first, Some("- likes tea"), &begun.parts), Gathered::default());
        let changed = standing(&[says("AGENTS.md", "use spaces")], Some("- likes tea"), &begun.parts);
        assert!(changed.text.contains("use spaces") && !changed.text.contains("tea"), "{}", changed.text);
        assert_eq!(changed.parts.len(), 1);
        // What cannot be read is told, once.
        let broken = [Instruction { problem: Some("it leads out".to_owned()), ..says("sub/AGENTS.md", "[not shown]") }];
        let told = standing(&broken, Some(""), &[]);
        assert_eq!(told.notices, ["the instructions in `/work/sub/AGENTS.md` are not shown: it leads out"]);
        assert_eq!(standing(&broken, Some(""), &told.parts), Gathered::default());
    }

    #[test]
    fn what_is_gone_is_said_to_be_gone_once() {
        let begun = standing(&[says("AGENTS.md", "use tabs")], Some("- likes tea"), &[]);
        let gone = standing(&[], Some(""), &begun.parts);
        assert!(gone.text.contains("/work/AGENTS.md") && gone.text.contains("the memory"), "{}", gone.text);
        assert!(gone.parts.iter().all(|part| part.version.is_none()));
        assert_eq!(standing(&[], Some(""), &[]), Gathered::default());
        // A memory that could not be read is not gone.
        assert!(!standing(&[], None, &begun.parts).text.contains("the memory"));
    }
}

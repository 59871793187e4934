//! Titles that make themselves: of the first message of a person's that is shown.
//!
//! Nothing is stored that says who gave a title. It made itself where it is what would be made of a message: whoever hides
//! the message does not leave its words in the title. Every other title was given, and stays.

use turnwright_core::{ContentBlock, Control, Entry, Journal, MessageId, Seq};

use crate::SideRecord;

/// The longest title that is made from a message, in characters.
const MAX_TITLE_CHARS: usize = 60;

/// A title from a message: its first line that says something, cut at a word.
pub(super) fn title_of(content: &[ContentBlock]) -> Option<String> {
    let line = content.iter().find_map(|block| match block {
        ContentBlock::Text { text } => text.lines().map(str::trim).find(|line| !line.is_empty()),
        ContentBlock::Image { .. }
        | ContentBlock::Audio { .. }
        | ContentBlock::Resource { .. }
        | ContentBlock::ResourceLink { .. } => None,
    })?;
    if line.chars().count() <= MAX_TITLE_CHARS {
        return Some(line.to_owned());
    }
    let cut: String = line.chars().take(MAX_TITLE_CHARS).collect();
    let at_word = cut.rsplit_once(char::is_whitespace).map_or(cut.as_str(), |(words, _)| words);
    Some(format!("{}…", at_word.trim_end()))
}

/// A title as it is kept that somebody gave: on one line, and none where it says nothing.
pub(in crate::engine) fn given(title: String) -> Option<String> {
    let title = if title.contains(char::is_control) { title.replace(char::is_control, " ") } else { title };
    (!title.trim().is_empty()).then_some(title)
}

/// The title of a journal of these entries: of the first message of a person's that they do not hide.
pub(in crate::engine) fn title_in<'a>(entries: impl Iterator<Item = &'a Entry> + Clone) -> Option<String> {
    let hidden: Vec<MessageId> = entries.clone().filter_map(hides).collect();
    let mut said = std::iter::successors(Some(Seq::FIRST), |seq| Some(seq.next())).map(MessageId).zip(entries);
    said.find_map(|(message, entry)| said_in(entry).filter(|_| !hidden.contains(&message)).and_then(title_of))
}

/// What becomes of a conversation's title with these entries: one is made where it has none and nothing that was said before,
/// and is shown, gives one, and one that was made of a message that they hide is made anew of what is shown, or taken away.
pub(super) fn retitled(title: Option<&str>, journal: &Journal, entries: &[Entry]) -> Option<SideRecord> {
    let hidden: Vec<MessageId> = entries.iter().filter_map(hides).collect();
    let shown = || {
        let said = journal.entries().iter().filter_map(|stored| Some((MessageId(stored.seq), said_in(&stored.entry)?)));
        said.filter(|(message, _)| !journal.is_hidden(*message))
    };
    let mut stays = shown().filter(|(message, _)| !hidden.contains(message));
    let mut said = entries.iter().filter_map(said_in);
    match title {
        None => {
            let made = said.find_map(title_of).filter(|_| !stays.any(|(_, content)| title_of(content).is_some()));
            made.map(|made| SideRecord::Title(Some(made)))
        }
        Some(title) => {
            let is_of = |(message, content): (MessageId, &[ContentBlock])| {
                hidden.contains(&message) && title_of(content).as_deref() == Some(title)
            };
            let made_itself = !hidden.is_empty() && shown().any(is_of);
            made_itself.then(|| SideRecord::Title(stays.map(|(_, content)| content).chain(said).find_map(title_of)))
        }
    }
}

fn hides(entry: &Entry) -> Option<MessageId> {
    match entry {
        Entry::Control(Control::Hidden { message }) => Some(*message),
        _ => None,
    }
}

fn said_in(entry: &Entry) -> Option<&[ContentBlock]> {
    match entry {
        Entry::User(message) => Some(&message.content),
        _ => None,
    }
}

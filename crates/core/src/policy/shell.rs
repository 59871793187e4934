//! A shell line as the commands that it starts, as far as that can be read without running it.
//!
//! It reads what people and models write every day and gives up on the rest: a line that cannot be read for certain is
//! nobody's to allow. So it is a scanner of its own and no whole shell grammar, of which most would be refused here anyway.
//! It follows the words of POSIX shells (`sh`, `bash`, `dash`, `zsh`, `ksh`). *Not here:* what the programs are, which is
//! `programs.rs`.

use std::iter::Peekable;
use std::vec::IntoIter;

use super::word::{PutIn, Set, Word};

/// The longest line that is read, in bytes.
pub(super) const MAX_BYTES: usize = 64 * 1024;
/// How deep substitutions and subshells may lie in one another.
const MAX_DEPTH: usize = 16;

/// A command with its words, the program first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Command {
    /// The variables that are set for it, or by it where it has no words.
    pub(super) sets: Vec<Set>,
    /// The program and its arguments; may be empty.
    pub(super) words: Vec<Word>,
}

/// All commands of a line, those of its substitutions among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// They, in no particular order.
    pub(super) commands: Vec<Command>,
    /// Whether an output goes to a file.
    pub(super) writes: bool,
}

/// The commands of a line; `None` where it cannot be read for certain.
pub(super) fn read(line: &str) -> Option<Line> {
    read_at(line, 0)
}

fn read_at(line: &str, depth: usize) -> Option<Line> {
    if line.len() > MAX_BYTES {
        return None;
    }
    let chars = line.chars().collect::<Vec<_>>().into_iter().peekable();
    let mut reader = Reader { chars, line: Line::default(), here: Vec::new(), depth };
    reader.list(Until::End)?;
    Some(reader.line)
}

/// Where a list of commands ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    End,
    Parenthesis,
}

/// What may come next in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A command.
    Command,
    /// The variable and the values of a `for`.
    Values,
    /// Nothing but redirections, until the command is over.
    Closed,
}

/// A document within the line that is still to come.
#[derive(Debug)]
struct Here {
    end: String,
    drops_tabs: bool,
    is_quoted: bool,
}

#[derive(Debug)]
struct Reader {
    chars: Peekable<IntoIter<char>>,
    line: Line,
    here: Vec<Here>,
    depth: usize,
}

impl Reader {
    fn peek(&mut self) -> Option<char> {
        self.chars.peek().copied()
    }

    /// Whether a word is over here.
    fn is_at_end(&mut self) -> bool {
        matches!(self.peek(), None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')'))
    }

    fn eat(&mut self, expected: char) -> bool {
        self.chars.next_if_eq(&expected).is_some()
    }

    fn list(&mut self, until: Until) -> Option<()> {
        self.depth += 1;
        // A document that is due begins at the next line, which shells do not agree on inside of parentheses.
        if self.depth > MAX_DEPTH || (until == Until::Parenthesis && !self.here.is_empty()) {
            return None;
        }
        let mut command = Command::default();
        let mut place = Place::Command;
        let mut was_redirected = false;
        loop {
            let is_redirected = std::mem::take(&mut was_redirected);
            match self.peek() {
                None if until == Until::End && self.here.is_empty() => break,
                Some(')') if until == Until::Parenthesis && self.here.is_empty() => {
                    self.chars.next();
                    break;
                }
                None | Some(')') => return None,
                Some(' ' | '\t') => drop(self.chars.next()),
                Some('\n') => {
                    self.chars.next();
                    self.end(&mut command, &mut place)?;
                    self.documents()?;
                }
                Some(';') => {
                    self.chars.next();
                    if matches!(self.peek(), Some(';' | '&')) {
                        return None;
                    }
                    self.end(&mut command, &mut place)?;
                }
                Some('&') => {
                    self.chars.next();
                    if self.eat('>') {
                        self.eat('>');
                        self.target(Direction::Out)?;
                        // A shell that does not know `&>` begins another command here.
                        place = Place::Closed;
                    } else {
                        self.eat('&');
                        self.end(&mut command, &mut place)?;
                    }
                }
                Some('|') => {
                    self.chars.next();
                    if !self.eat('|') {
                        self.eat('&');
                    }
                    self.end(&mut command, &mut place)?;
                }
                Some('(') => {
                    self.chars.next();
                    let is_subshell = place == Place::Command && command == Command::default() && self.peek() != Some('(');
                    // Behind the target of a redirection it says to some which files are meant.
                    if !is_subshell || is_redirected {
                        return None;
                    }
                    self.list(Until::Parenthesis)?;
                    place = Place::Closed;
                }
                Some('#') => while self.chars.next_if(|c| *c != '\n').is_some() {},
                Some('<' | '>') => {
                    self.redirection(&mut command, place)?;
                    was_redirected = true;
                }
                Some(_) => self.word_of(&mut command, &mut place)?,
            }
        }
        self.end(&mut command, &mut place)?;
        self.depth -= 1;
        Some(())
    }

    /// A word in its place.
    fn word_of(&mut self, command: &mut Command, place: &mut Place) -> Option<()> {
        let word = self.word()?;
        let is_number =
            word.is_literal && !word.is_quoted && !word.text.is_empty() && word.text.bytes().all(|b| b.is_ascii_digit());
        if is_number && matches!(self.peek(), Some('<' | '>')) {
            return self.redirection(command, *place);
        }
        // A shell may take what is in the braces for the variable of the redirection that follows.
        if word.text.starts_with('{') && !word.is_literal && matches!(self.peek(), Some('<' | '>')) {
            return None;
        }
        // A lone continuation of the line. Two parentheses that it stands between are arithmetic.
        if word.text.is_empty() && !word.is_quoted && word.is_literal {
            return (self.peek() != Some('(')).then_some(());
        }
        let bare = if word.is_quoted || !word.is_literal { "" } else { word.text.as_str() };
        // To some shells a glob: all files but these.
        if bare == "!" && self.peek() == Some('(') {
            return None;
        }
        match *place {
            Place::Closed => match bare {
                "}" | "fi" | "done" | "then" | "do" => {}
                _ => return None,
            },
            Place::Command if command.words.is_empty() => match bare {
                "if" | "then" | "elif" | "else" | "while" | "until" | "do" | "!" | "{" if command.sets.is_empty() => {}
                "fi" | "done" | "}" if command.sets.is_empty() => *place = Place::Closed,
                "for" if command.sets.is_empty() => *place = Place::Values,
                "case" | "esac" | "select" | "function" | "coproc" | "[[" | "in" | "foreach" | "repeat" => return None,
                _ => match word.set() {
                    Some(set) => command.sets.push(set),
                    None => command.words.push(word),
                },
            },
            // Some end a command with it wherever it stands.
            Place::Command if bare == "}" => return None,
            Place::Values | Place::Command => command.words.push(word),
        }
        Some(())
    }

    /// A command is over.
    fn end(&mut self, command: &mut Command, place: &mut Place) -> Option<()> {
        let over = std::mem::take(command);
        if std::mem::replace(place, Place::Command) == Place::Values {
            let mut words = over.words.into_iter();
            let variable = words.next().filter(|word| word.is_literal)?;
            if words.next().is_some_and(|word| word.text != "in" || word.is_quoted) {
                return None;
            }
            let set = Set { name: variable.text, is_number: false };
            self.line.commands.push(Command { sets: vec![set], words: Vec::new() });
        } else if over != Command::default() {
            self.line.commands.push(over);
        }
        Some(())
    }

    /// From its first sign on; also a substitution of a process, which is a word.
    fn redirection(&mut self, command: &mut Command, place: Place) -> Option<()> {
        let sign = self.chars.next()?;
        if self.peek() == Some('(') {
            self.chars.next();
            self.list(Until::Parenthesis)?;
            // A word that goes on: what looks like a comment is none.
            if place == Place::Closed || !self.is_at_end() {
                return None;
            }
            command.words.push(Word { is_literal: false, ..Word::empty() });
            return Some(());
        }
        if sign == '>' {
            if self.eat('&') {
                return self.target(Direction::Duplicate);
            }
            if !self.eat('>') {
                self.eat('|');
            }
            return self.target(Direction::Out);
        }
        if self.eat('&') {
            return self.target(Direction::Duplicate);
        }
        if self.eat('>') {
            return self.target(Direction::Out);
        }
        if !self.eat('<') {
            return self.target(Direction::In);
        }
        if self.eat('<') {
            return self.target(Direction::In);
        }
        // What goes on in the next line may be a dash, or a third sign.
        let escaped = if self.eat('\\') { Some(self.chars.next().filter(|escaped| *escaped != '\n')?) } else { None };
        let drops_tabs = escaped.is_none() && self.eat('-');
        if escaped.is_none() {
            self.blanks();
        }
        let mut end = self.word()?;
        if let Some(escaped) = escaped {
            end.text.insert(0, escaped);
            end.is_quoted = true;
        }
        if !end.is_literal || end.text.contains('\n') || end.text.is_empty() && !end.is_quoted {
            return None;
        }
        self.here.push(Here { end: end.text, drops_tabs, is_quoted: end.is_quoted });
        Some(())
    }

    /// The word after a redirection's sign.
    fn target(&mut self, direction: Direction) -> Option<()> {
        self.blanks();
        if matches!(self.peek(), Some('<' | '>')) {
            return None;
        }
        let word = self.word()?;
        if word.text.is_empty() && word.is_literal && !word.is_quoted {
            return None;
        }
        let text = word.text.as_str();
        // What is put in may make it one.
        let known = word.varies_at.and_then(|at| text.get(..at));
        let is_socket = ["/dev/tcp", "/dev/udp"]
            .iter()
            .any(|socket| text.starts_with(socket) || known.is_some_and(|known| socket.starts_with(known)));
        let is_harmless = word.is_literal
            && match direction {
                Direction::In => !is_socket,
                Direction::Out => matches!(text, "/dev/null" | "/dev/stdout" | "/dev/stderr"),
                Direction::Duplicate => text == "-" || text.bytes().all(|b| b.is_ascii_digit()),
            };
        self.line.writes |= !is_harmless && (direction != Direction::In || is_socket);
        Some(())
    }

    fn blanks(&mut self) {
        while self.chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    }

    /// The documents that begin after a line.
    fn documents(&mut self) -> Option<()> {
        for here in std::mem::take(&mut self.here) {
            loop {
                self.peek()?;
                let mut line = String::new();
                while let Some(c) = self.chars.next_if(|c| *c != '\n') {
                    line.push(c);
                }
                self.chars.next();
                let text = if here.drops_tabs { line.trim_start_matches('\t') } else { line.as_str() };
                if text == here.end {
                    break;
                }
                let is_plain =
                    here.is_quoted || !line.contains(['`', '\\']) && !["$(", "${", "$["].iter().any(|s| line.contains(s));
                if !is_plain {
                    return None;
                }
            }
        }
        Some(())
    }

    fn word(&mut self) -> Option<Word> {
        let mut word = Word::empty();
        let mut has_braces = false;
        while !self.is_at_end()
            && let Some(c) = self.chars.next()
        {
            match c {
                '\\' => match self.chars.next()? {
                    '\n' => {}
                    escaped => {
                        word.is_quoted = true;
                        word.text.push(escaped);
                    }
                },
                '\'' => {
                    word.is_quoted = true;
                    loop {
                        match self.chars.next()? {
                            '\'' => break,
                            inner => word.text.push(inner),
                        }
                    }
                }
                '"' => {
                    word.is_quoted = true;
                    self.double_quoted(&mut word)?;
                }
                '$' if matches!(self.peek(), Some('\'' | '"')) => return None,
                '$' => {
                    let put_in = self.dollar(&mut word)?;
                    word.takes(put_in, false);
                }
                '`' => {
                    self.backtick()?;
                    word.takes(PutIn::Text, false);
                }
                '{' if self.peek() == Some('}') => {
                    self.chars.next();
                    has_braces |= !word.text.is_empty() || word.is_quoted || !word.is_literal;
                    word.text.push_str("{}");
                }
                // Some take the first of these for the beginning of a list, but where a word begins with it.
                '}' if has_braces => return None,
                '{' if word.text.is_empty() && matches!(self.peek(), Some(' ' | '\t' | '\n')) => word.text.push(c),
                // The program of that name, or a part of a name: in a glob more would come.
                '[' if word.is_literal && self.is_at_end() => word.text.push(c),
                '*' | '?' | '[' | '{' => {
                    word.globs();
                    word.text.push(c);
                }
                // After a continuation of the line a comment begins here.
                '#' if word.text.is_empty() && !word.is_quoted && word.is_literal => return None,
                '~' | '=' if word.text.is_empty() && !word.is_quoted => {
                    word.is_literal = false;
                    word.text.push(c);
                }
                '=' => {
                    if word.sets.is_none() && !word.is_quoted && word.is_literal {
                        let name = word.text.strip_suffix('+').unwrap_or(&word.text);
                        word.sets = is_name(name).then(|| name.to_owned());
                    }
                    word.text.push(c);
                }
                c if c.is_control() => return None,
                c => word.text.push(c),
            }
        }
        Some(word)
    }

    fn double_quoted(&mut self, word: &mut Word) -> Option<()> {
        loop {
            match self.chars.next()? {
                '"' => return Some(()),
                '\\' => match self.chars.next()? {
                    '\n' => {}
                    escaped @ ('$' | '`' | '"' | '\\') => word.text.push(escaped),
                    other => word.text.extend(['\\', other]),
                },
                '$' => {
                    let put_in = self.dollar(word)?;
                    word.takes(put_in, true);
                }
                '`' => {
                    self.backtick()?;
                    word.takes(PutIn::Text, true);
                }
                c => word.text.push(c),
            }
        }
    }

    /// After a `$`.
    fn dollar(&mut self, word: &mut Word) -> Option<PutIn> {
        match self.peek() {
            Some('(') => {
                self.chars.next();
                if self.peek() == Some('(') {
                    return None;
                }
                self.list(Until::Parenthesis)?;
                Some(PutIn::Text)
            }
            Some('{') => {
                self.chars.next();
                let mut name = String::new();
                loop {
                    match self.chars.next()? {
                        '}' => break,
                        c => name.push(c),
                    }
                }
                if is_name(&name) { Some(PutIn::Text) } else { special(&name) }
            }
            // What is continued on the next line is its name, or a parenthesis; some say by the others how a variable is put in.
            Some('[' | '\\' | '=' | '~' | '^' | '+') => None,
            Some(c) if c.is_ascii_alphanumeric() || c == '_' => {
                while self.chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_').is_some() {}
                // To some shells an index, which is an expression.
                (self.peek() != Some('[')).then_some(PutIn::Text)
            }
            Some(c) if special(c.encode_utf8(&mut [0; 4])).is_some() => {
                self.chars.next();
                special(c.encode_utf8(&mut [0; 4]))
            }
            _ => {
                word.text.push('$');
                Some(PutIn::Known)
            }
        }
    }

    /// After a backtick.
    fn backtick(&mut self) -> Option<()> {
        if !self.here.is_empty() {
            return None;
        }
        let mut inner = String::new();
        loop {
            match self.chars.next()? {
                '`' => break,
                '\\' => return None,
                c => inner.push(c),
            }
        }
        let line = read_at(&inner, self.depth)?;
        self.line.commands.extend(line.commands);
        self.line.writes |= line.writes;
        Some(())
    }
}

/// What a parameter that the shell sets itself puts in; `None` where there is none of the name.
fn special(name: &str) -> Option<PutIn> {
    match name {
        "?" | "#" | "!" | "$" => Some(PutIn::Number),
        "-" => Some(PutIn::Text),
        "@" | "*" => Some(PutIn::List),
        _ => None,
    }
}

/// Which way a redirection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
    Duplicate,
}

/// Whether a text can be a variable's name.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

//! The forms in which models write calls as text, and the marks by which each is known.

use std::fmt;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A form in which models write calls as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// `{"name": …, "arguments": …}` or `parameters`, alone at the start of a line, in a list or in a fenced block.
    Json,
    /// Qwen, Hermes, GLM: `<tool_call>…</tool_call>` around JSON, `<function=…>` or `<arg_key>`; `<tools>`, `<function_call>`.
    Hermes,
    /// `[TOOL_CALLS]` before a list, or before a name and its arguments.
    Mistral,
    /// `<|python_tag|>…`, and `<function=NAME>{…}</function>`.
    Llama,
    /// `[name(key="value"), …]` alone at the start of a line, and the same in a `tool_code` block or in its special tokens.
    Python,
    /// `<｜tool▁calls▁begin｜>…`.
    Deepseek,
    /// Granite and Phi: `<|tool_call|>[…]`, `functools[…]`.
    Granite,
    /// `<|tool_calls_section_begin|>…`.
    Kimi,
    /// gpt-oss: `<|channel|>commentary to=functions.NAME …<|message|>{…}`.
    Harmony,
    /// `MiniMax` and others: `<invoke name="NAME"><parameter name="KEY">…`.
    Invoke,
    /// Command: `<|START_ACTION|>[…]<|END_ACTION|>`.
    Cohere,
}

impl TextForm {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Json,
        Self::Hermes,
        Self::Mistral,
        Self::Llama,
        Self::Python,
        Self::Deepseek,
        Self::Granite,
        Self::Kimi,
        Self::Harmony,
        Self::Invoke,
        Self::Cohere,
    ];

    /// Its name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Hermes => "hermes",
            Self::Mistral => "mistral",
            Self::Llama => "llama",
            Self::Python => "python",
            Self::Deepseek => "deepseek",
            Self::Granite => "granite",
            Self::Kimi => "kimi",
            Self::Harmony => "harmony",
            Self::Invoke => "invoke",
            Self::Cohere => "cohere",
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for TextForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The forms that are looked for in an endpoint's answers: in the configuration `true` for all, `false`, or a list of names.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct TextForms(u16);

impl TextForms {
    /// None: what an endpoint writes as text is text.
    pub const NONE: Self = Self(0);
    /// All.
    pub const ALL: Self = {
        let (mut bits, mut at) = (0, 0);
        while at < TextForm::ALL.len() {
            bits |= 1 << at;
            at += 1;
        }
        Self(bits)
    };

    /// This one alone.
    pub const fn only(form: TextForm) -> Self {
        Self(form.bit())
    }

    /// These and one more.
    #[must_use]
    pub const fn with(self, form: TextForm) -> Self {
        Self(self.0 | form.bit())
    }

    /// Whether it is among them.
    pub const fn contains(self, form: TextForm) -> bool {
        self.0 & form.bit() != 0
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them, in the order of [`TextForm::ALL`].
    pub fn iter(self) -> impl Iterator<Item = TextForm> {
        TextForm::ALL.into_iter().filter(move |form| self.contains(*form))
    }
}

impl fmt::Debug for TextForms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Serialize for TextForms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::ALL => serializer.serialize_bool(true),
            Self::NONE => serializer.serialize_bool(false),
            _ => serializer.collect_seq(self.iter().map(TextForm::as_str)),
        }
    }
}

#[derive(Clone, Copy)]
struct FormsVisitor;

impl<'de> Visitor<'de> for FormsVisitor {
    type Value = TextForms;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = TextForm::ALL.map(TextForm::as_str).join(", ");
        write!(f, "true, false or a list of {names}")
    }

    fn visit_bool<E>(self, is_wanted: bool) -> Result<TextForms, E> {
        Ok(if is_wanted { TextForms::ALL } else { TextForms::NONE })
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<TextForms, E> {
        let form = TextForm::ALL.into_iter().find(|form| form.as_str() == name);
        form.map(TextForms::only).ok_or_else(|| E::invalid_value(de::Unexpected::Str(name), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<TextForms, A::Error> {
        let mut forms = TextForms::NONE;
        while let Some(name) = list.next_element::<String>()? {
            let TextForms(bit) = self.visit_str(&name)?;
            forms.0 |= bit;
        }
        Ok(forms)
    }
}

impl<'de> Deserialize<'de> for TextForms {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FormsVisitor)
    }
}

/// What a text that may become a call begins with, and with it how it is read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// A JSON value or a Python list at the start of a line.
    Bare,
    /// A fenced block of JSON.
    Fence,
    /// A fenced block of Python calls.
    CodeFence,
    /// A tag whose closing tag is this.
    Tag(&'static str),
    MistralToken,
    PythonTag,
    FunctionTag,
    /// Special tokens around a Python list; the closing one is this.
    PythonTokens(&'static str),
    DeepseekCalls,
    DeepseekCall,
    ToolCallToken,
    Functools,
    KimiSection,
    KimiCall,
    Harmony,
    /// What closes the calls, where something does; the calls follow.
    InvokeSection(&'static str),
    /// The first call itself.
    InvokeCall,
    DsmlSection,
    CohereAction,
    QwenFunction,
}

/// The marks that may stand anywhere but in code. Where one is the beginning of another, the longer comes first.
pub(super) const MARKS: [(&str, Opening, TextForm); 25] = [
    ("<tool_call>", Opening::Tag("</tool_call>"), TextForm::Hermes),
    ("<function_call>", Opening::Tag("</function_call>"), TextForm::Hermes),
    ("<tools>", Opening::Tag("</tools>"), TextForm::Hermes),
    // What Qwen's template puts around results; small models put it around calls.
    ("<tool_response>", Opening::Tag("</tool_response>"), TextForm::Hermes),
    ("✿FUNCTION✿:", Opening::QwenFunction, TextForm::Hermes),
    ("[TOOL_CALLS]", Opening::MistralToken, TextForm::Mistral),
    ("<|python_tag|>", Opening::PythonTag, TextForm::Llama),
    ("<function=", Opening::FunctionTag, TextForm::Llama),
    ("<|python_start|>", Opening::PythonTokens("<|python_end|>"), TextForm::Python),
    ("<|tool_call_start|>", Opening::PythonTokens("<|tool_call_end|>"), TextForm::Python),
    ("<｜tool▁calls▁begin｜>", Opening::DeepseekCalls, TextForm::Deepseek),
    ("<｜tool▁call▁begin｜>", Opening::DeepseekCall, TextForm::Deepseek),
    ("<|tool_call|>", Opening::ToolCallToken, TextForm::Granite),
    ("functools[", Opening::Functools, TextForm::Granite),
    ("<|tool_calls_section_begin|>", Opening::KimiSection, TextForm::Kimi),
    ("<|tool_call_begin|>", Opening::KimiCall, TextForm::Kimi),
    ("<|channel|>commentary to=", Opening::Harmony, TextForm::Harmony),
    ("<|start|>assistant<|channel|>commentary to=", Opening::Harmony, TextForm::Harmony),
    ("<|start|>assistant to=", Opening::Harmony, TextForm::Harmony),
    ("<minimax:tool_call>", Opening::InvokeSection("</minimax:tool_call>"), TextForm::Invoke),
    ("<function_calls>", Opening::InvokeSection("</function_calls>"), TextForm::Invoke),
    ("<invoke name=\"", Opening::InvokeCall, TextForm::Invoke),
    ("<｜DSML｜function_calls>", Opening::DsmlSection, TextForm::Deepseek),
    ("<|START_ACTION|>", Opening::CohereAction, TextForm::Cohere),
    ("<|tool_call>", Opening::ToolCallToken, TextForm::Granite),
];

/// What a mark begins with: nothing else has to be looked at.
pub(super) fn may_begin_mark(byte: u8) -> bool {
    matches!(byte, b'<' | b'[' | b'f' | 0xE2)
}

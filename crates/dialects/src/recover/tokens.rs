//! Calls between special tokens that a server should have taken away.

use super::cursor::{Call, Cursor, Read};
use super::{json, python};

/// What follows Mistral's `[TOOL_CALLS]`: a list, or a name and its arguments.
pub(super) fn mistral(cursor: &mut Cursor<'_>) -> Read<Vec<Call>> {
    if matches!(cursor.next()?, '[' | '{') {
        return json::calls(cursor);
    }
    let name = cursor.name()?;
    cursor.next()?;
    if cursor.take("[CALL_ID]")? {
        let id = cursor.word(|c| c.is_ascii_alphanumeric());
        cursor.at += id.len();
        cursor.next()?;
    }
    cursor.take("[ARGS]")?;
    Ok(vec![(name, json::arguments(cursor)?)])
}

/// What follows Llama's `<|python_tag|>`: calls in JSON or as Python's, with semicolons between them.
pub(super) fn python_tag(cursor: &mut Cursor<'_>) -> Read<Vec<Call>> {
    let mut calls = Vec::new();
    loop {
        match cursor.next()? {
            '{' => calls.extend(json::calls(cursor)?),
            '[' => {
                let mut ahead = *cursor;
                ahead.at += 1;
                if ahead.next()? == '{' { calls.extend(json::calls(cursor)?) } else { calls.extend(python::list(cursor)?) }
            }
            _ => {
                let name = cursor.name()?;
                cursor.take(".call")?;
                calls.push((name, python::arguments(cursor)?));
            }
        }
        if cursor.is_over() || cursor.next()? != ';' {
            break;
        }
        cursor.at += 1;
        if cursor.is_over() {
            break;
        }
    }
    if !cursor.is_over() && !cursor.take("<|eom_id|>")? {
        cursor.take("<|eot_id|>")?;
    }
    Ok(calls)
}

/// A Python list, or calls one after another, up to a closing token.
pub(super) fn python_tokens(cursor: &mut Cursor<'_>, closing: &str) -> Read<Vec<Call>> {
    let calls = if cursor.next()? == '[' { python::list(cursor)? } else { vec![python::call(cursor)?] };
    cursor.close(closing)?;
    Ok(calls)
}

/// The lines of a `tool_code` block, after its opening fence.
pub(super) fn tool_code(cursor: &mut Cursor<'_>) -> Read<Vec<Call>> {
    let mut calls = Vec::new();
    loop {
        match cursor.next() {
            Err(_) if !calls.is_empty() && cursor.is_over() => return Ok(calls),
            Err(stop) => return Err(stop),
            Ok('`') if !calls.is_empty() => {
                cursor.close("```")?;
                return Ok(calls);
            }
            Ok('[') => calls.extend(python::list(cursor)?),
            Ok(_) => {
                let is_printed = cursor.take("print(")?;
                cursor.take("default_api.")?;
                calls.push(python::call(cursor)?);
                if is_printed {
                    cursor.close(")")?;
                }
            }
        }
    }
}

const CALL_BEGIN: &str = "<｜tool▁call▁begin｜>";
const CALL_END: &str = "<｜tool▁call▁end｜>";
const SEPARATOR: &str = "<｜tool▁sep｜>";

/// What follows DeepSeek's `<｜tool▁calls▁begin｜>`.
pub(super) fn deepseek_calls(cursor: &mut Cursor<'_>) -> Read<Vec<Call>> {
    let mut calls = Vec::new();
    loop {
        if !calls.is_empty() && cursor.is_over() {
            return Ok(calls);
        }
        cursor.next()?;
        if cursor.take(CALL_BEGIN)? {
            calls.push(deepseek_call(cursor)?);
        } else if calls.is_empty() {
            return cursor.no();
        } else {
            cursor.close("<｜tool▁calls▁end｜>")?;
            return Ok(calls);
        }
    }
}

/// What follows `<｜tool▁call▁begin｜>`: a name and its arguments, or the word `function`, a name and arguments in a block.
pub(super) fn deepseek_call(cursor: &mut Cursor<'_>) -> Read<Call> {
    cursor.next()?;
    let is_typed = cursor.take("function<｜tool▁sep｜>")?;
    let name = cursor.name()?;
    cursor.next()?;
    if !is_typed {
        cursor.expect(SEPARATOR)?;
        cursor.next()?;
    }
    let is_fenced = cursor.take("```json")?;
    let arguments = json::arguments(cursor)?;
    if is_fenced {
        cursor.close("```")?;
    }
    cursor.close(CALL_END)?;
    Ok((name, arguments))
}

/// What follows `<|tool_call|>`: a list or an object, which a closing token may end.
pub(super) fn tool_call_token(cursor: &mut Cursor<'_>) -> Read<Vec<Call>> {
    cursor.next()?;
    let calls = json::calls(cursor)?;
    if cursor.is_over() {
        return Ok(calls);
    }
    let after = cursor.at;
    cursor.next()?;
    if !cursor.take("<|/tool_call|>")? && !cursor.take("</tool_call>")? {
        // White space before other text is that text's.
        cursor.at = after;
    }
    Ok(calls)
}

/// What follows Kimi's `<|tool_calls_section_begin|>`.
pub(super) fn kimi_section(cursor: &mut Cursor<'_>) -> Read<Vec<Call>> {
    let mut calls = Vec::new();
    loop {
        if !calls.is_empty() && cursor.is_over() {
            return Ok(calls);
        }
        cursor.next()?;
        if cursor.take("<|tool_call_begin|>")? {
            calls.push(kimi_call(cursor)?);
        } else if calls.is_empty() {
            return cursor.no();
        } else {
            cursor.close("<|tool_calls_section_end|>")?;
            return Ok(calls);
        }
    }
}

/// What follows `<|tool_call_begin|>`: `functions.NAME:0`, a token, the arguments.
pub(super) fn kimi_call(cursor: &mut Cursor<'_>) -> Read<Call> {
    cursor.next()?;
    cursor.take("functions.")?;
    let name = cursor.name()?;
    if cursor.take(":")? {
        cursor.at += cursor.word(|c| c.is_ascii_digit()).len();
    }
    cursor.space();
    cursor.expect("<|tool_call_argument_begin|>")?;
    let arguments = json::arguments(cursor)?;
    cursor.close("<|tool_call_end|>")?;
    Ok((name, arguments))
}

/// What follows `to=` in gpt-oss's channel: `functions.NAME`, what the content is, a token, the arguments.
pub(super) fn harmony(cursor: &mut Cursor<'_>) -> Read<Vec<Call>> {
    cursor.take("functions.")?;
    let name = cursor.name()?;
    cursor.next()?;
    // The channel may be named after the recipient.
    cursor.take("<|channel|>commentary")?;
    cursor.next()?;
    cursor.take("<|constrain|>")?;
    cursor.at += cursor.word(|c| c.is_ascii_lowercase()).len();
    cursor.space();
    cursor.expect("<|message|>")?;
    let arguments = json::arguments(cursor)?;
    if !cursor.is_over() {
        let after = cursor.at;
        cursor.next()?;
        if !cursor.take("<|call|>")? {
            cursor.at = after;
        }
    }
    Ok(vec![(name, arguments)])
}

/// What follows Command's `<|START_ACTION|>`.
pub(super) fn cohere(cursor: &mut Cursor<'_>) -> Read<Vec<Call>> {
    cursor.next()?;
    let calls = json::calls(cursor)?;
    cursor.close("<|END_ACTION|>")?;
    Ok(calls)
}

/// What follows Qwen's `✿FUNCTION✿:`.
pub(super) fn qwen(cursor: &mut Cursor<'_>) -> Read<Vec<Call>> {
    cursor.next()?;
    let name = cursor.name()?;
    cursor.space();
    cursor.expect("✿ARGS✿:")?;
    Ok(vec![(name, json::arguments(cursor)?)])
}

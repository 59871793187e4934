//! `turnwright mcp resources` and `turnwright mcp prompts`: what a server has besides tools.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use turnwright_core::EmbeddedResource;
use turnwright_engine::ToolError;
use turnwright_host::{Host, McpServer};

use super::no_server;
use crate::cli::{McpPrompts, McpResources};
use crate::exit::{Exit, Failure};
use crate::output::{Output, say};
use crate::table::{first_line, table};

/// The most characters of a description in a list.
const MAX_DESCRIPTION: usize = 80;

pub(super) async fn resources(host: &Host, asked: McpResources, output: &mut Output) -> Result<Exit, Failure> {
    let McpResources { name, uri, follow, listed } = asked;
    let server = server(host, &name)?;
    let Some(uri) = uri else {
        let shelf = server.shelf().await.map_err(failed(&name))?;
        shelf.problems.iter().for_each(|problem| say(&format!("warning: {problem}")));
        if listed.json {
            output.json_pretty(&json!({"resources": shelf.resources, "templates": shelf.templates}));
            return Ok(Exit::Done);
        }
        let row = |uri: &str, mime_type: Option<&String>, name: &str, description: Option<&String>| {
            let about = description.map_or_else(|| name.to_owned(), |text| first_line(text, MAX_DESCRIPTION));
            [uri.to_owned(), mime_type.cloned().unwrap_or_default(), about]
        };
        let mut rows: Vec<_> = shelf
            .resources
            .iter()
            .map(|resource| row(&resource.uri, resource.mime_type.as_ref(), &resource.name, resource.description.as_ref()))
            .collect();
        rows.extend(shelf.templates.iter().map(|template| {
            row(&template.uri_template, template.mime_type.as_ref(), &template.name, template.description.as_ref())
        }));
        output.lines(&table(&rows));
        return Ok(Exit::Done);
    };
    let watched = if follow { Some(server.watch_resource(&uri).await.map_err(failed(&name))?) } else { None };
    show(&server.read_resource(&uri).await.map_err(failed(&name))?, listed.json, output);
    if let Some(mut watched) = watched {
        loop {
            watched.changed().await;
            show(&server.read_resource(&uri).await.map_err(failed(&name))?, listed.json, output);
        }
    }
    Ok(Exit::Done)
}

pub(super) async fn prompts(host: &Host, asked: McpPrompts, output: &mut Output) -> Result<Exit, Failure> {
    let McpPrompts { name, prompt, arguments, listed } = asked;
    let server = server(host, &name)?;
    let Some(prompt) = prompt else {
        let shelf = server.shelf().await.map_err(failed(&name))?;
        shelf.problems.iter().for_each(|problem| say(&format!("warning: {problem}")));
        if listed.json {
            output.json_pretty(&shelf.prompts);
            return Ok(Exit::Done);
        }
        let rows = shelf.prompts.iter().map(|prompt| {
            let arguments = prompt
                .arguments
                .iter()
                .map(|argument| if argument.is_required { argument.name.clone() } else { format!("[{}]", argument.name) });
            let about = prompt.description.as_deref().or(prompt.title.as_deref()).unwrap_or_default();
            [prompt.name.clone(), arguments.collect::<Vec<_>>().join(" "), first_line(about, MAX_DESCRIPTION)]
        });
        output.lines(&table(&rows.collect::<Vec<_>>()));
        return Ok(Exit::Done);
    };
    let arguments = arguments.iter().map(|pair| given(pair)).collect::<Result<Map<String, Value>, Failure>>()?;
    let came = server.prompt(&prompt, &arguments).await.map_err(failed(&name))?;
    if listed.json {
        let messages = came.messages.iter().map(|said| json!({"role": said.role, "content": said.content}));
        output.json_pretty(&json!({"description": came.description, "messages": messages.collect::<Vec<_>>()}));
        return Ok(Exit::Done);
    }
    for said in &came.messages {
        output.line(&format!("{}: {}", said.role, said.content.as_text()));
    }
    Ok(Exit::Done)
}

fn given(pair: &str) -> Result<(String, Value), Failure> {
    let (name, value) = pair.split_once('=').ok_or_else(|| {
        Failure::usage(format!("`{pair}` is no argument of a prompt")).hint("an argument is given as NAME=VALUE")
    })?;
    Ok((name.to_owned(), value.into()))
}

fn show(contents: &[EmbeddedResource], as_json: bool, output: &mut Output) {
    if as_json {
        output.json_pretty(&contents);
        return;
    }
    for part in contents {
        match (&part.text, &part.blob) {
            (Some(text), _) => output.line(text),
            (None, Some(blob)) => {
                let kind = part.mime_type.as_deref().unwrap_or("of an unknown kind");
                say(&format!("note: {} is no text ({kind}, {} characters of base64); --json gives it", part.uri, blob.len()));
            }
            (None, None) => {}
        }
    }
}

fn server(host: &Host, name: &str) -> Result<Arc<McpServer>, Failure> {
    host.resources().named(name).ok_or_else(|| no_server(name, host))
}

/// What people are told where a model would be told to go on without it.
/// What was wrong at the server of this name, in its own words where it said any.
fn failed(name: &str) -> impl Fn(ToolError) -> Failure {
    move |error| match error.diagnostic {
        Some(reason) => Failure::failed(format!("MCP server `{name}`: {reason}")),
        None => Failure::failed(error.model_text),
    }
}

"""Talks to a server with the official library: client.py BASE_URL. What is not as it should be raises."""
import json
import sys

import openai
from openai import OpenAI

client = OpenAI(base_url=sys.argv[1], api_key="any")
completions = client.chat.completions
PICK = {"type": "object", "properties": {"from": {"type": "string"}}, "required": ["from"]}
CHAT_TOOLS = [{"type": "function", "function": {"name": "pick", "parameters": PICK}}]
TOOLS = [{"type": "function", "name": "pick", "parameters": PICK, "strict": False}]


def user(text):
    return [{"role": "user", "content": text}]


def same(got, wanted):
    assert got == wanted, f"got {got!r}, wanted {wanted!r}"


def plain():
    answer = completions.create(model="p/m", messages=user("hello"))
    same((answer.choices[0].message.content, answer.choices[0].finish_reason), ("Hello there.", "stop"))
    same((answer.usage.prompt_tokens, answer.usage.completion_tokens), (7, 3))
    same([model.id for model in client.models.list() if model.owned_by == "p"], ["p/m"])
    same(client.models.retrieve("p/m").object, "model")


def streamed():
    text, reasons, usage, calls = "", [], None, 0
    stream = completions.create(model="m", messages=user("ours"), stream=True, stream_options={"include_usage": True})
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            calls += len(choice.delta.tool_calls or [])
            reasons += [choice.finish_reason] if choice.finish_reason else []
    same((text, reasons, calls, usage.prompt_tokens), ("Reading.\n\nGot hello file\n", ["stop"], 0, 14))
    with client.chat.completions.stream(model="p/m", messages=user("ours")) as helper:
        same(helper.get_final_completion().choices[0].message.content, "Reading.\n\nGot hello file\n")


def handed_over():
    messages = user("both")
    first = completions.create(model="p/m", messages=messages, tools=CHAT_TOOLS)
    message = first.choices[0].message
    same(first.choices[0].finish_reason, "tool_calls")
    same([(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls], [("pick", {"from": "x"})])
    messages += [message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "red"}]
    second = completions.create(model="p/m", messages=messages, tools=CHAT_TOOLS)
    same(second.choices[0].message.content, "Got red")
    same(second.turnwright["turn_id"], first.turnwright["turn_id"])
    messages += [second.choices[0].message, *user("hello")]
    third = completions.create(model="p/m", messages=messages, tools=CHAT_TOOLS)
    same(third.turnwright["conversation_id"], first.turnwright["conversation_id"])


def seen():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    answer = completions.create(model="p/m", messages=[{"role": "user", "content": [{"type": "text", "text": "image"}, picture]}])
    same(answer.choices[0].message.content, "One image.")
    schema = {"name": "number", "schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    answer = completions.create(model="p/m", messages=user("json"), response_format={"type": "json_schema", "json_schema": schema})
    same(json.loads(answer.choices[0].message.content), {"n": 1})


def waiting():
    answer = completions.create(model="p/m", messages=user("write"))
    same(answer.choices[0].finish_reason, "stop")
    assert "turnwright approvals decide call_" in answer.choices[0].message.content, answer
    first = client.responses.create(model="p/m", input="write")
    item, told = first.output[-2:]
    # It names no server of tools, and may not know such an item.
    assert "turnwright approvals decide call_" in told.content[0].text, first
    same((first.status, item.type, item.server_label, item.name), ("completed", "mcp_approval_request", "filesystem", "write"))
    decision = {"type": "mcp_approval_response", "approval_request_id": item.id, "approve": True}
    second = client.responses.create(model="p/m", previous_response_id=first.id, input=[decision])
    same([item.type for item in second.output], ["mcp_call", "message"])
    same((second.output[0].approval_request_id, second.output[0].status), (item.id, "completed"))


def responses():
    answer = client.responses.create(model="p/m", input="ours", instructions="Be brief.")
    same([item.type for item in answer.output], ["message", "mcp_call", "message"])
    same((answer.output_text, answer.status), ("Reading.Got hello file\n", "completed"))
    same(answer.output[1].output, "hello file\n")
    same(client.responses.retrieve(answer.id).output_text, answer.output_text)
    kinds = [event.type for event in client.responses.create(model="p/m", input="hello", stream=True)]
    same((kinds[0], kinds[-1]), ("response.created", "response.completed"))
    with client.responses.stream(model="p/m", input="both", tools=TOOLS) as stream:
        for _ in stream:
            pass
        first = stream.get_final_response()
    call = next(item for item in first.output if item.type == "function_call")
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "red"}
    second = client.responses.create(model="p/m", previous_response_id=first.id, input=[output])
    same(second.output_text, "Got red")
    started = client.responses.create(model="p/m", input="hello", background=True)
    assert started.status in ("in_progress", "completed"), started
    client.responses.delete(answer.id)
    refused(openai.NotFoundError, client.responses.retrieve, answer.id)


def refused(error, ask, *args, **more):
    try:
        ask(*args, **more)
    except error as told:
        return told
    raise AssertionError(f"no {error}")


def errors():
    told = refused(openai.NotFoundError, completions.create, model="gpt-9", messages=user("hello"))
    same((told.code, told.param, told.type), ("model_not_found", "model", "invalid_request_error"))
    refused(openai.BadRequestError, completions.create, model="p/m", messages=user("hello"), n=2)
    search = {"tools": [{"type": "web_search"}]}
    taken = client.responses.with_raw_response.create(model="p/m", input="hello", **search)
    same(taken.headers["x-turnwright-left-out"], "web_search")
    search["tool_choice"] = {"type": "web_search"}
    refused(openai.BadRequestError, client.responses.create, model="p/m", input="hello", **search)
    refused(openai.RateLimitError, completions.create, model="p/m", messages=user("limit"))
    refused(openai.RateLimitError, client.responses.create, model="p/m", input="limit")
    refused(openai.RateLimitError, lambda: list(completions.create(model="p/m", messages=user("limit"), stream=True)))
    told = refused(openai.APIError, lambda: list(client.responses.create(model="p/m", input="limit", stream=True)))
    same(told.code, "rate_limit_exceeded")
    refused(openai.NotFoundError, client.responses.create, model="p/m", input="x", previous_response_id="resp_1_none")


for check in [plain, streamed, handed_over, seen, waiting, responses, errors]:
    check()
print("well")

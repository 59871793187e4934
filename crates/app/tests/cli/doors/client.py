"""Takes one turn through a door with the official library: client.py ROOT DOOR PROMPT. Prints the conversation and all text
that the library read of it; what is not as it should be raises."""
import json
import sys
import urllib.request

from openai import OpenAI

root, door, prompt = sys.argv[1:]
client = OpenAI(base_url=f"{root}/v1", api_key="any")


def api(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{root}/api/v1/{path}", data, {"content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def completions():
    text, conversation = "", None
    for chunk in client.chat.completions.create(model="p/m", messages=[{"role": "user", "content": prompt}], stream=True):
        conversation = (getattr(chunk, "turnwright", None) or {}).get("conversation_id") or conversation
        for choice in chunk.choices:
            text += choice.delta.content or ""
    end = text.index("I copy it.") + len("I copy it. ")
    assert "turnwright approvals decide call_" in text[end:], text
    call = api("GET", f"conversations/{conversation}/calls")["data"][0]["id"]
    api("POST", f"conversations/{conversation}/calls/{call}/decision", {"decision": "allow"})
    events = f"{root}/api/v1/conversations/{conversation}/events"
    watching = urllib.request.urlopen(urllib.request.Request(events, headers={"last-event-id": call.split("_")[1]}))
    rest = ""
    for line in watching:
        if line.startswith(b"data: "):
            event = json.loads(line[6:])
            rest += event["text"] if event["type"] == "text.delta" else ""
            if event["type"] == "turn.finished":
                break
    return conversation, text[:end].replace("\n\n", "") + rest


def responses():
    def read(**more):
        with client.responses.stream(model="p/m", **more) as stream:
            for _ in stream:
                pass
            return stream.get_final_response()

    first = read(input=prompt)
    *output, told = first.output
    asked = output[-1]
    assert [item.type for item in output] == ["message", "mcp_call", "mcp_call", "message", "mcp_call", "mcp_approval_request"], first
    assert "turnwright approvals decide call_" in told.content[0].text, first
    answer = {"type": "mcp_approval_response", "approval_request_id": asked.id, "approve": True}
    second = read(input=[answer], previous_response_id=first.id)
    conversation = second.turnwright["conversation_id"]
    said = "".join(item.content[0].text for item in output if item.type == "message")
    return conversation, said + second.output_text


conversation, text = {"completions": completions, "responses": responses}[door]()
print(json.dumps({"conversation": conversation, "text": text}))

"""A small MCP server of the handshake era; what it offers and does is added by each test."""
import json, os, sys


def tool(name, description):
    return {"name": name, "description": description, "inputSchema": {"type": "object"}}


def serve(tools, call, before_each=lambda: None):
    """`tools()` is the list, `call(params)` the text that a call gives."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = {}
        if message["method"] == "initialize":
            result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                      "serverInfo": {"name": "s", "version": "1"}}
        elif message["method"] == "tools/list":
            result = {"tools": tools()}
        elif message["method"] == "tools/call":
            result = {"content": [{"type": "text", "text": call(message["params"])}]}
        before_each()
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


def note(name, words):
    with open(name, "w") as file:
        file.write("%s\n" % words)



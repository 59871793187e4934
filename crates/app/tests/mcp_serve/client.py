"""The official Python client as a client of `turnwright mcp serve` and `/mcp`. Prints one JSON object of what it saw.

client.py ERA URL            over streamable HTTP; ERA is auto or legacy
client.py ERA PROGRAM ARG…   over standard input and output
With ERA hang it begins a call that does not end, says so, and waits to be killed. With ERA changes it waits for the tools
to change.
"""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters
from mcp.types import ElicitResult

era, target = sys.argv[1], sys.argv[2:]
if target[0].startswith("http"):
    server = target[0]
else:
    server = StdioServerParameters(command=target[0], args=target[1:])


def shown(result):
    blocks = []
    for block in result.content:
        match block.type:
            case "text":
                blocks.append(block.text)
            case "image":
                blocks.append([block.mime_type, block.data[:5]])
            case "resource_link":
                blocks.append(block.uri)
            case other:
                blocks.append(other)
    return {"error": bool(result.is_error), "content": blocks, "structured": result.structured_content}


async def answers(seen, decision):
    async def ask(context, params):
        seen.append({"message": params.message, "schema": params.requested_schema})
        if decision is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"decision": decision})

    return ask


async def talk():
    saw = {}
    async with Client(server, mode=era, elicitation_callback=None) as client:
        saw["version"] = client.protocol_version
        saw["server"] = client.server_info.name if client.server_info else None
        tools = (await client.list_tools()).tools
        echo = next(tool for tool in tools if tool.name == "everything__echo")
        saw["echo_schema"] = echo.input_schema
        saw["annotated"] = sorted(tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint)[:1]
        saw["echo"] = shown(await client.call_tool("everything__echo", {"message": "hi"}))
        saw["image"] = shown(await client.call_tool("everything__get-tiny-image", {}))["content"][1:2]
        saw["links"] = shown(await client.call_tool("everything__get-resource-links", {"count": 2}))["content"][1:]
        structured = await client.call_tool("everything__get-structured-content", {"location": "Chicago"})
        saw["structured"] = sorted(structured.structured_content)
        promised = next(tool for tool in tools if tool.name == "everything__get-structured-content").output_schema
        saw["promised"] = sorted(promised["properties"]) if promised else None
        link = (await client.call_tool("everything__get-resource-links", {"count": 1})).content[1]
        saw["link"] = [link.name, link.title, link.description, link.mime_type, link.size]
        saw["not_asked"] = shown(await client.call_tool("everything__trigger-elicitation-request", {}))["content"][0]
        saw["invalid"] = shown(await client.call_tool("everything__echo", {"message": 3}))
        progress = []

        async def told(at, total, message):
            progress.append([at, total])

        long = {"duration": 0.3, "steps": 3}
        await client.call_tool("everything__trigger-long-running-operation", long, progress_callback=told)
        saw["progress"] = progress
        try:
            await client.call_tool("nobody__nothing", {})
        except MCPError as error:
            saw["unknown"] = error.error.code if hasattr(error, "error") else error.code
        stopping = asyncio.Event()

        async def begun(at, total, message):
            stopping.set()

        never = {"duration": 600, "steps": 6000}
        long = client.call_tool("everything__trigger-long-running-operation", never, progress_callback=begun)
        call = asyncio.create_task(long)
        await stopping.wait()
        call.cancel()
        many = [client.call_tool("everything__echo", {"message": str(number)}) for number in range(20)]
        saw["many"] = [shown(result)["content"][0] for result in await asyncio.gather(*many)]
        saw["nobody_asked"] = shown(await client.call_tool("everything__get-sum", {"a": 1, "b": 2}))
    for name, decision in [("allowed", "allow"), ("denied", "deny"), ("declined", None)]:
        seen = []
        async with Client(server, mode=era, elicitation_callback=await answers(seen, decision)) as client:
            result = shown(await client.call_tool("everything__get-sum", {"a": 1, "b": 3}))
            saw[name] = {"asked": seen, "result": result}
    forms = []

    async def fill(context, params):
        forms.append([params.message, sorted(params.requested_schema["properties"])[:2]])
        return ElicitResult(action="accept", content={"name": "Ada"})

    async with Client(server, mode=era, elicitation_callback=fill) as client:
        result = shown(await client.call_tool("everything__trigger-elicitation-request", {}))
        saw["filled"] = {"asked": forms, "result": result["content"][:2]}
    return saw


async def hang():
    begun = asyncio.Event()

    async def told(at, total, message):
        begun.set()

    async with Client(server) as client:
        long = {"duration": 600, "steps": 6000}
        call = client.call_tool("everything__trigger-long-running-operation", long, progress_callback=told)
        task = asyncio.create_task(call)
        await begun.wait()
        print("begun", flush=True)
        await task


async def changes():
    async with Client(server) as client:
        before = {tool.name for tool in (await client.list_tools()).tools}
        async with client.listen(tools_list_changed=True) as changes:
            print("listening", flush=True)
            async for _ in changes:
                return sorted({tool.name for tool in (await client.list_tools()).tools} - before)


work = {"hang": hang, "changes": changes}.get(era, talk)
print(json.dumps(asyncio.run(asyncio.wait_for(work(), 100))))

#!/usr/bin/env python3
"""offers.py ERA [MODE]: an MCP server over stdio with resources and prompts, of the era `legacy` or `modern`.

The tool `grow` adds a resource and a prompt, `touch` changes the resource that is named, `seen` tells how often each method
was asked and the log level of the last request. In the mode `stumbles` the tools that `grow` changed cannot be listed once. In the mode `tells` it repeats the variable
TOLD_KEY wherever it can. Standard library only.
"""
import json
import os
import sys
from collections import Counter

ERA, MODE = sys.argv[1], (sys.argv[2:] + [""])[0]
SEEN = Counter()
RESOURCES = [{"uri": "note://%d" % number, "name": "note %d" % number, "mimeType": "text/plain"} for number in range(5)]
PROMPTS = [{"name": "review", "description": "Reviews code.", "arguments": [{"name": "code", "required": True}, {"name": "style"}]}]
TEMPLATES = [{"uriTemplate": "note://{number}", "name": "notes"}]
LANGUAGES = ["perl", "php", "prolog", "python"]
STATE = {"level": None, "subscribed": set(), "listening": None, "listened": 0}
CAPABILITIES = {"tools": {"listChanged": True}, "resources": {"listChanged": True, "subscribe": True},
                "prompts": {"listChanged": True}, "completions": {}, "logging": {}}
KEY = os.environ.get("TOLD_KEY", "") if MODE == "tells" else ""
if MODE == "tells":
    RESOURCES[0].update(title=KEY, description=KEY, annotations={"told": KEY})
    TEMPLATES[0]["description"] = KEY
    PROMPTS[0]["arguments"][0]["description"] = KEY
    LANGUAGES.append("p" + KEY)
if MODE == "plain":
    CAPABILITIES = {"tools": {}}


def send(**message):
    sys.stdout.write(json.dumps(dict(jsonrpc="2.0", **message)) + "\n")
    sys.stdout.flush()


def answer(request, **result):
    send(id=request, result={"resultType": "complete", **result} if ERA == "modern" else result)


def fail(request, code, message, **data):
    send(id=request, error={"code": code, "message": message, **({"data": data} if data else {})})


def notify(method, **params):
    if ERA == "modern":
        if STATE["listening"] is None:
            return
        params["_meta"] = {"io.modelcontextprotocol/subscriptionId": STATE["listening"]}
    send(method=method, params=params)


def page(request, key, items, params):
    if MODE == "loops":
        return answer(request, **{key: items[:2]}, nextCursor="same")
    if MODE == "bad":
        return answer(request, **{key: [items[0], {}, "no", items[0]]})
    if MODE == "null":
        return answer(request, **{key: None})
    if MODE == "silent" and key != "tools":
        return None
    start = int(params.get("cursor", 0))
    more = {"nextCursor": str(start + 2)} if start + 2 < len(items) else {}
    return answer(request, **{key: items[start:start + 2]}, **more)


def call(request, name, arguments):
    if name == "grow":
        RESOURCES.append({"uri": "note://new", "name": "new"})
        PROMPTS.append({"name": "new"})
        notify("notifications/resources/list_changed")
        notify("notifications/prompts/list_changed")
        if MODE == "stumbles":
            notify("notifications/tools/list_changed")
    elif name == "touch":
        if arguments["uri"] in STATE["subscribed"]:
            notify("notifications/resources/updated", uri=arguments["uri"])
    elif name == "drop":
        # Ends the subscription, as a server does that is about to be replaced.
        answer(STATE["listening"])
        STATE.update(listening=None, subscribed=set())
    text = json.dumps({"seen": SEEN, "level": STATE["level"], "subscribed": sorted(STATE["subscribed"])})
    answer(request, content=[{"type": "text", "text": text if name == "seen" else "done"}])


def read(request, uri):
    if uri == "note://asks" and ERA == "modern":
        send(id=request, result={"resultType": "input_required", "inputRequests": {}})
    elif not uri.startswith("note://"):
        fail(request, -32602 if ERA == "modern" else -32002, "Resource not found")
    elif uri == "note://picture":
        answer(request, contents=[{"uri": uri, "mimeType": "image/png", "blob": "AA=="}])
    elif uri == "note://silent":
        return
    elif uri == "note://broken":
        answer(request, contents="text")
    else:
        answer(request, contents=[{"uri": uri, "mimeType": "text/plain", "text": "the text of %s" % uri + KEY}, {"text": "more"}])


def handle(message):
    request, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    SEEN[method] += 1
    if ERA == "modern" and method != "notifications/cancelled":
        STATE["level"] = params.get("_meta", {}).get("io.modelcontextprotocol/logLevel")
    if method == "server/discover":
        if ERA == "modern":
            return answer(request, supportedVersions=["2026-07-28"], capabilities=CAPABILITIES)
        return fail(request, -32601, "Method not found")
    if method == "initialize":
        if ERA == "modern":
            return fail(request, -32022, "not spoken", supported=["2026-07-28"])
        return answer(request, protocolVersion=params["protocolVersion"], capabilities=CAPABILITIES,
                      serverInfo={"name": "offers", "version": "1" + KEY}, instructions="Use it." + KEY)
    if method == "tools/list":
        if MODE == "stumbles" and SEEN[method] == 2:
            return fail(request, -32603, "the database is locked")
        names = ["grow", "touch", "seen", "drop"] + (["late"] if MODE == "stumbles" and SEEN[method] > 2 else [])
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        return answer(request, tools=tools)
    if method == "tools/call":
        return call(request, params["name"], params.get("arguments") or {})
    if method == "logging/setLevel" and ERA == "legacy":
        STATE["level"] = params["level"]
        return answer(request)
    if method == "resources/list":
        return page(request, "resources", RESOURCES, params)
    if method == "resources/templates/list":
        if MODE == "no_templates":
            return fail(request, -32601, "Method not found")
        return page(request, "resourceTemplates", TEMPLATES, params)
    if method == "prompts/list":
        return page(request, "prompts", PROMPTS, params)
    if method == "resources/read":
        return read(request, params["uri"])
    if method == "prompts/get":
        if "code" not in (params.get("arguments") or {}):
            return fail(request, -32602, "code is missing")
        said = {"role": "user", "content": {"type": "text", "text": "Review: " + params["arguments"]["code"] + KEY}}
        return answer(request, description="Reviews code.", messages=[said, {"role": "assistant", "content": {"type": "video"}}])
    if method == "completion/complete":
        begin = params["argument"]["value"]
        context = params.get("context", {}).get("arguments", {})
        values = [language for language in LANGUAGES if language.startswith(begin)] + sorted(context.values())
        return answer(request, completion={"values": values, "hasMore": begin == "p"})
    if method == "resources/subscribe" and ERA == "legacy":
        STATE["subscribed"].add(params["uri"])
        return answer(request)
    if method == "resources/unsubscribe" and ERA == "legacy":
        STATE["subscribed"].discard(params["uri"])
        return answer(request)
    if method == "subscriptions/listen" and ERA == "modern" and MODE != "no_listen":
        wanted = params["notifications"]
        STATE.update(listening=request, subscribed=set(wanted.get("resourceSubscriptions", [])))
        return notify("notifications/subscriptions/acknowledged", notifications=wanted)
    if method == "notifications/cancelled" and params.get("requestId") == STATE["listening"]:
        STATE.update(listening=None, subscribed=set())
    if request is not None:
        fail(request, -32601, "Method not found")
    return None


for line in sys.stdin:
    handle(json.loads(line))

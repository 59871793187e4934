#!/usr/bin/env python3
"""tasks.py ERA FOLDER [POLLS]: an MCP server over stdio that takes calls as tasks, of the era `legacy` or `modern`;
`legacy-quiet` does not say so in its list, `legacy-both` takes plain calls too.

A task is a file of FOLDER, so that it outlives the process; FOLDER/made counts how often a task was made, FOLDER/cancelled
names those that were cancelled, FOLDER/updates tells what they were given. Where there is FOLDER/late, what was answered is asked once more. It cannot tell of a task as often as FOLDER/fails says. A task is done when it was asked for POLLS times, or as often as FOLDER/polls says. Tools: `build`; `paint`, which asks for a
colour on the way; `break`, which fails; `forget`, whose task is lost at once. Standard library only.
"""
import json
import os
import sys

ERA, FOLDER = sys.argv[1], sys.argv[2]
POLLS = int((sys.argv[3:] + ["2"])[0])
MODERN, QUIET, BOTH = ERA == "modern", ERA == "legacy-quiet", ERA == "legacy-both"
OBJECT = {"type": "object", "properties": {}}
COLOUR = {"message": "Which colour?", "requestedSchema": {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}}
WAITING = {}
RESULTS = []


def send(**message):
    sys.stdout.write(json.dumps(dict(jsonrpc="2.0", **message)) + "\n")
    sys.stdout.flush()


def answer(request, **result):
    send(id=request, result={"resultType": "complete", **result} if MODERN else result)


def fail(request, code, message):
    send(id=request, error={"code": code, "message": message})


def note(name, line):
    with open(os.path.join(FOLDER, name), "a") as file:
        file.write(line + "\n")


def load(task):
    try:
        with open(os.path.join(FOLDER, "task-" + task)) as file:
            return json.load(file)
    except OSError:
        return None


def save(task, state):
    """Whole or not at all: it may be killed at any moment."""
    draft = os.path.join(FOLDER, "draft-%d" % os.getpid())
    with open(draft, "w") as file:
        json.dump(state, file)
    os.replace(draft, os.path.join(FOLDER, "task-" + task))


def told(task, state):
    status = state["status"]
    told = {"taskId": task, "status": status, "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
    told.update({"ttlMs": 60000, "pollIntervalMs": 30} if MODERN else {"ttl": 60000, "pollInterval": 30})
    if status == "working":
        told["statusMessage"] = "asked %d times" % state["polls"]
    return told


def result(state):
    text = "%s is done, colour %s" % (state["name"], state.get("colour", "none"))
    return {"content": [{"type": "text", "text": text}]}


def make(request, name):
    note("made", name)
    task = "t%d" % sum(file.startswith("task-") for file in os.listdir(FOLDER))
    state = {"name": name, "status": "working", "polls": 0}
    if name != "forget":
        save(task, state)
    if MODERN:
        send(id=request, result={"resultType": "task", **told(task, state)})
    else:
        answer(request, task=told(task, state))


def enough():
    try:
        with open(os.path.join(FOLDER, "polls")) as file:
            return int(file.read())
    except OSError:
        return POLLS


def fails():
    try:
        with open(os.path.join(FOLDER, "fails")) as file:
            left = int(file.read())
    except OSError:
        return False
    with open(os.path.join(FOLDER, "fails"), "w") as file:
        file.write(str(left - 1))
    return left > 0


def step(state):
    """Goes on as far as it gets until it is asked for again."""
    state["polls"] += 1
    if state["status"] != "working" or state["polls"] <= enough():
        return
    if state["name"] == "paint" and "colour" not in state:
        state["status"] = "input_required"
    else:
        state["status"] = "failed" if state["name"] == "break" else "completed"


def get(request, task, state):
    step(state)
    save(task, state)
    more = {}
    if MODERN and state["status"] == "completed":
        more = {"result": result(state)}
    if MODERN and state["status"] == "failed":
        more = {"error": {"code": -32000, "message": "it fell apart"}}
    if MODERN and state["status"] in ("input_required", "late"):
        more = {"inputRequests": {"colour": {"method": "elicitation/create", "params": COLOUR}}}
    if state["status"] == "late":
        save(task, dict(state, status="working"))
        state["status"] = "input_required"
    answer(request, **told(task, state), **more)
    if not MODERN and state["status"] != "working":
        for waits in [waits for waits in RESULTS if waits[1] == task]:
            RESULTS.remove(waits)
            finish(*waits, state)


def finish(request, task, state):
    if state["status"] == "working":
        # Until it is over, or wants something; it gets on as it is asked for.
        RESULTS.append((request, task))
        return None
    if state["status"] == "failed":
        return fail(request, -32000, "it fell apart")
    if state["status"] == "input_required":
        def hear(message):
            state.update(status="completed", colour=message["result"].get("content", {}).get("colour", "none"))
            save(task, state)
            answer(request, **result(state))
        WAITING["ask"] = hear
        return send(id="ask", method="elicitation/create", params=COLOUR)
    answer(request, **result(state))


def handle(message):
    request, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method is None:
        return WAITING.pop(request, lambda _: None)(message)
    if request is None:
        return None
    if method == "server/discover" and MODERN:
        return answer(request, supportedVersions=["2026-07-28"], capabilities={"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}, ttlMs=0, cacheScope="private")
    if method == "initialize" and not MODERN:
        tasks = {"cancel": {}, "requests": {"tools": {"call": {}}}}
        return answer(request, protocolVersion="2025-11-25", capabilities={"tools": {}, "tasks": tasks}, serverInfo={"name": "tasks", "version": "1"})
    if method == "tools/list":
        names = ["build", "paint", "break", "forget"]
        tools = [{"name": name, "description": name, "inputSchema": OBJECT, **({} if QUIET else {"execution": {"taskSupport": "optional" if BOTH else "required"}})} for name in names]
        return answer(request, tools=tools, **({"ttlMs": 0, "cacheScope": "private"} if MODERN else {}))
    if method == "tools/call":
        if BOTH and "task" not in params:
            return answer(request, content=[{"type": "text", "text": "plain"}])
        if not MODERN and "task" not in params:
            return fail(request, -32601, "only as a task")
        return make(request, params["name"])
    if method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/update"):
        task = params["taskId"]
        state = load(task)
        if state is None:
            return fail(request, -32602, "no such task")
        if method == "tasks/get" and fails():
            return fail(request, -32603, "the database is locked")
        if method == "tasks/get":
            return get(request, task, state)
        if method == "tasks/result" and not MODERN:
            return finish(request, task, state)
        if method == "tasks/update" and MODERN:
            note("updates", json.dumps(params["inputResponses"]))
            is_late = os.path.exists(os.path.join(FOLDER, "late"))
            state.update(status="late" if is_late else "working", colour=params["inputResponses"]["colour"].get("content", {}).get("colour", "none"))
            save(task, state)
            return answer(request)
        if method == "tasks/cancel":
            note("cancelled", task)
            state["status"] = "cancelled"
            save(task, state)
            return answer(request, **({} if MODERN else told(task, state)))
    fail(request, -32601, "Method not found")


while True:
    line = sys.stdin.readline()
    if not line:
        break
    handle(json.loads(line))

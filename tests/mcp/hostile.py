"""A server over stdio that does everything wrong, one thing for each tool or option.

It speaks the protocol by hand, because no library would let it misbehave like this.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

OPTIONS = set(sys.argv[2:])
RECORD = Path(sys.argv[1])
OBJECT = {"type": "object", "properties": {}}
TOOLS = {
    name: {"name": name, "description": f"Does {name}.", "inputSchema": OBJECT}
    for name in (
        "fine",
        "hang",
        "die",
        "large",
        "huge",
        "grow",
        "steps",
        "ask",
        "wrong",
        "refuse",
        "nothing",
    )
}


def record(word):
    with RECORD.open("a") as file:
        file.write(f"{word}\n")


def send(**message):
    if "garbage" in OPTIONS:
        print("DEBUG: about to answer {not json")
        sys.stdout.buffer.write(b"\xff\xfe\x00 noise\n")
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(request, result):
    send(id=request["id"], result=result)


def text(request, said, **more):
    answer(request, {"content": [{"type": "text", "text": said}], **more})


def listed():
    if "many" in OPTIONS:
        return [{**TOOLS["fine"], "name": f"tool_{n}"} for n in range(10_000)]
    if "schemas" in OPTIONS:
        bad = {"type": "object", "properties": {"a": {"type": "no such type"}}}
        return [
            TOOLS["fine"],
            {"name": "bad", "inputSchema": bad},
            {"name": "no good name", "inputSchema": OBJECT},
        ]
    return list(TOOLS.values())


def read():
    line = sys.stdin.readline()
    if not line:
        if "stubborn" in OPTIONS:
            while True:
                signal.pause()
        sys.exit(0)
    return json.loads(line)


def asked(method, params=None):
    """Ask the client something, and wait for what it says."""
    send(id=f"my-{method}", method=method, params=params or {})
    while (got := read()).get("id") != f"my-{method}":
        pass
    return got.get("result") or got["error"]["message"]


def call(request):
    params = request["params"]
    name = params["name"]
    record(f"call {name}")
    match name:
        case "hang":
            pass
        case "die":
            print("out of luck", file=sys.stderr, flush=True)
            os._exit(3)
        case "large":
            text(request, "x" * 1_000_000)
        case "huge":
            text(request, "x" * (17 << 20))
        case "grow":
            TOOLS["grown"] = {"name": "grown", "inputSchema": OBJECT}
            del TOOLS["steps"]
            send(method="notifications/tools/list_changed")
            text(request, "grown")
        case "steps":
            token = params["_meta"]["progressToken"]
            for done in (1, 2):
                told = {"progressToken": token, "progress": done, "total": 2, "message": "working"}
                send(method="notifications/progress", params=told)
            text(request, "done")
        case "ask":
            roots = asked("roots/list")
            message = {"role": "user", "content": {"type": "text", "text": "hi"}}
            sampled = asked("sampling/createMessage", {"messages": [message], "maxTokens": 9})
            text(request, json.dumps({"roots": roots, "sampled": sampled}))
        case "wrong":
            answer(request, {"content": [{"type": "no such type"}]})
        case "refuse":
            send(id=request["id"], error={"code": -32000, "message": "not today"})
        case "nothing":
            text(request, "", isError=True)
        case _:
            text(request, "fine")


if "stubborn" in OPTIONS:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
    record(f"child {child.pid}")
record(f"pid {os.getpid()}")
if "mute" in OPTIONS:
    print("Listening on port 8080", flush=True)

while True:
    message = read()
    method = message.get("method")
    if "mute" in OPTIONS or "id" not in message:
        if method == "notifications/cancelled":
            record("cancelled")
    elif method == "initialize":
        version = message["params"]["protocolVersion"]
        about = {"name": "hostile", "version": "1.0"}
        capabilities = {"tools": {"listChanged": True}}
        answer(message, {"protocolVersion": version, "capabilities": capabilities, "serverInfo": about})
    elif method == "tools/list":
        answer(message, {"tools": listed()})
    elif method == "tools/call":
        call(message)
    elif method:
        send(id=message["id"], error={"code": -32601, "message": "no such method"})

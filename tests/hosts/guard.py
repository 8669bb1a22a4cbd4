"""One file, five agents: deny, rewrite, withhold, log, and a check before the agent stops."""

from pathlib import Path

LOG = Path(__file__).with_name("calls.log")


def guard_shell(event):
    if event.tool_name != "shell":
        return None
    command = event.input["command"]
    if "sudo" in command:
        return event.deny("not as root")
    if "crash" in command:
        raise ValueError("this guard is broken")
    if "original" in command:
        return event.replace({**event.input, "command": command.replace("original", "changed")})
    return None


def no_forbidden_words(event):
    if "forbidden" in event.text:
        return event.deny("not that")
    return None


def no_secrets(event):
    if "SECRET" in str(event.content):
        return event.deny("it holds a secret")
    return None


def log(event):
    with LOG.open("a") as file:
        file.write(f"{event.tool_result.name}\n")


def checked(event):
    if "checked" not in event.response:
        return event.deny("Check your work first, then say that you checked it.")
    return None


hooks = [
    ("input", no_forbidden_words),
    ("tool_call", guard_shell),
    ("tool_result", no_secrets),
    ("tool_execution_end", log),
    ("agent_stop", checked),
]

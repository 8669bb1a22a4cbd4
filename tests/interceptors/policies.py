"""Interceptors as somebody else would write them, named by the settings of the tests."""

from typing import ClassVar

from agent_hooks import Decision, Transform, Verdict


class Rule:
    """Says the same at one point, and allows the rest; keeps what it saw."""

    seen: ClassVar[list] = []

    def __init__(self, at="", verdict=None, when=lambda context: True):
        self.at, self.verdict, self.when = at, verdict or Verdict.allow(), when

    def intercept(self, context):
        Rule.seen.append(context)
        if context["interception_point"] == self.at and self.when(context):
            return self.verdict
        return Verdict.allow()


def allow():
    return Rule()


def no_echo(reason="no echo today"):
    return Rule("pre_tool_call", Verdict.deny(reason=reason))


def no_secrets():
    return Rule("input", Verdict.deny(reason="no"), lambda c: "secret" in c["input"]["content"])


def no_a():
    return Rule("pre_tool_call", Verdict.deny(reason="no a"), lambda c: c["target"] == {"text": "a"})


def once():
    calls = []

    def again(context):
        calls.append(context["tool_call"]["id"])
        return calls.count(calls[-1]) > 1

    return Rule("pre_tool_call", Verdict.deny(reason="once is enough"), again)


def ask():
    return Rule("pre_tool_call", Verdict.escalate(reason="really?"))


def louder():
    value = {"text": "LOUD"}
    return Rule("pre_tool_call", transform("$target", value), lambda c: c["tool_call"]["args"] != value)


def label():
    return Rule("post_tool_call", Verdict(decision=Decision.ALLOW, result_labels=("pii",)))


def hide_number():
    return Rule("post_tool_call", transform("$target.number", "***"))


def wordless():
    return Rule("input", transform("$target.content", {"not": "a text"}))


def polite():
    return Rule("input", transform("$target.content", "please"))


def other_ending():
    return Rule("post_model_call", transform("$target.finish_reason", "length"))


def redact():
    class Redactor:
        def intercept(self, context):
            if context["interception_point"] != "post_model_call":
                return Verdict.allow()
            content = context["response"]["content"] or ""
            if "sk-1" not in content:
                return Verdict.allow()
            return transform("$target.content", content.replace("sk-1", "[key]"))

    return Redactor()


def hold_messages():
    return Rule("pre_model_call", transform("$target", [{"role": "user", "content": "only this"}]))


def transform(path, value):
    return Verdict(decision=Decision.TRANSFORM, transform=Transform(path=path, value=value))


def broken():
    raise RuntimeError("no key for the policy server")


def nothing():
    return None


number = 7

"""opencode and pi, whose extensions are scripts: ours passes events on in a format of our own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, get_args

from .formats import HostFormat, printed
from .moment import HookOutput, Judgement, Kind, Moment


class ScriptedFormat(HostFormat):
    """The format of `opencode.ts` and `pi.ts`: the fields of a `Moment`, and those of a `Judgement`."""

    rewrites_prompts = True
    events: ClassVar[Mapping[str, Kind]] = {kind: kind for kind in get_args(Kind)}

    def event_of(self, given: Any) -> str:
        """The name of the event."""
        return self.string(given, "event")

    def read(self, given: dict[str, Any], workspace: Path) -> Moment:
        """The moment that a payload reports."""
        kind = self.kind_of(given)
        moment = Moment(kind, kind, self.string(given, "session"), given=given)
        moment.text = self.string(given, "text", "")
        moment.model = self.string(given, "model", "")
        moment.agent = self.string(given, "agent", "")
        if kind in ("tool_call", "permission", "tool_result"):
            self.call(moment, self.string(given, "tool"), self.table(given, "input"), workspace)
            moment.call_id = self.string(given, "id")
        if kind == "tool_result":
            moment.is_error = given.get("error") is True
            moment.result = self.result_text(given.get("result"))
        return moment

    def answer(self, moment: Moment, judgement: Judgement, workspace: Path) -> HookOutput:
        """A judgement as the script reads it; it takes anything else for a failure."""
        answer: dict[str, Any] = {"judged": moment.kind}
        if judgement.denied:
            answer["deny"] = judgement.reason
        elif judgement.arguments is not None:
            tool, given = moment.given["tool"], moment.given["input"]
            answer["input"] = self.tools.theirs(tool, given, judgement.arguments, workspace)
        if judgement.text is not None:
            answer["text"] = judgement.text
        if judgement.context:
            answer["context"] = judgement.context
        if judgement.notes:
            answer["note"] = judgement.message
        return printed(answer)


class OpenCode(ScriptedFormat):
    """opencode. It says that the agent stopped, and not that it is about to."""

    name = "opencode"
    title = "opencode"

    def read(self, given: dict[str, Any], workspace: Path) -> Moment:
        """The moment that a payload reports."""
        moment = super().read(given, workspace)
        moment.is_final = moment.kind == "stop"
        return moment


class Pi(ScriptedFormat):
    """pi."""

    name = "pi"
    title = "pi"

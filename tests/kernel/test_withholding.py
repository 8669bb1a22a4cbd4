"""What a gate holds back is seen by observers only as far as the verdict let it through."""

from dataclasses import field
from typing import Literal

import pytest

from hookline.hooks import (
    Catalog,
    Decision,
    Event,
    EventResult,
    HookRegistry,
    Ruling,
    event,
    gate,
    record,
)


@record
class LetterResult(EventResult):
    text: str | None = None
    block: bool = False

    def verdict(self):
        decision = Decision.DENY if self.block else Decision.ALLOW
        return Ruling(decision, changes=self.set_fields("block"))


@event(gate, withholds=("text", "pages"))
@record
class LetterEvent(Event[LetterResult]):
    type: Literal["letter"] = field(default="letter", init=False)
    text: str = ""
    pages: list[str] = field(default_factory=list)
    to: str = ""
    draft: bool = False

    @property
    def partial(self):
        return self.draft


@pytest.fixture
def hooks():
    return HookRegistry(Catalog(LetterEvent))


@pytest.fixture
def observed(hooks):
    """What a subscriber and the trace were shown, as text."""
    told = []
    hooks.subscribe(lambda e: told.append(("subscriber", e)))
    hooks.trace(lambda d: told.append(("trace", d.arguments["event"])))
    hooks.trace(lambda d: told.append(("rest", repr((d.arguments, d.value)))))
    return told


async def fire(hooks, **options):
    return await hooks["letter"].fire(LetterEvent("secret", ["secret"], "ada", **options), None)


async def test_what_is_allowed_is_seen(hooks, observed):
    hooks.register("letter", lambda e: None)
    await fire(hooks)
    assert [seen.text for name, seen in observed if name != "rest"] == ["secret", "secret"]


async def test_what_is_denied_is_seen_by_nobody_and_the_caller_gets_it_whole(hooks, observed):
    hooks.register("letter", lambda e: LetterResult(block=True))
    verdict = await fire(hooks)
    assert verdict.denied
    assert verdict.event.text == "secret"
    assert "secret" not in str(observed)
    events = [seen for name, seen in observed if name != "rest"]
    assert [(e.text, e.pages, e.to) for e in events] == [("", [], "ada")] * 2


async def test_of_what_was_changed_only_the_last_form_is_seen(hooks, observed):
    hooks.register("letter", lambda e: LetterResult(text="half secret"))
    hooks.register("letter", lambda e: LetterResult(text="fine"))
    verdict = await hooks["letter"].fire(LetterEvent("secret"), None)
    assert verdict.event.text == "fine"
    assert "secret" not in str(observed)
    assert [seen.text for name, seen in observed if name != "rest"] == ["fine", "fine"]


async def test_a_part_is_not_seen_even_where_it_is_allowed(hooks, observed):
    hooks.register("letter", lambda e: None)
    assert (await fire(hooks, draft=True)).allowed
    assert "secret" not in str(observed)


async def test_a_dispatch_that_fails_shows_nothing(hooks, observed):
    class Stop(BaseException):
        pass

    def stop(event):
        raise Stop

    hooks.register("letter", stop)
    with pytest.raises(Stop):
        await fire(hooks)
    assert "secret" not in str(observed)
    assert any(name == "trace" for name, _ in observed)

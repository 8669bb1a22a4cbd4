"""An event is declared in one place: its class. Whatever shows or checks hooks derives from it."""

import importlib.util
import sys
from types import ModuleType

import pytest

from hookline import Hooks
from hookline.cli.hooks import show_hooks
from hookline.observe.inspector.attached import catalogue
from hookline.observe.reference.markdown import markdown
from hookline.observe.trace.coverage import cover

MODULE = '''\
"""A plugin that brings an event of its own: the class, a handler, and the place that fires it."""

from dataclasses import field
from typing import Literal

from hookline import hookimpl
from hookline.hooks import Event, EventResult, event, gate, record


@record
class ReviewResult(EventResult):
    """Replace the text that is reviewed."""

    text: str | None = None


@event(gate, family="review", match="author", after="output", fires="before a text is published")
@record
class ReviewEvent(Event[ReviewResult]):
    """A text is about to be published."""

    type: Literal["review:text"] = field(default="review:text", init=False)
    author: str = ""
    text: str = ""


class Reviewer:
    @hookimpl(ReviewEvent, when="ada")
    def tidy(self, event: ReviewEvent) -> ReviewResult:
        return ReviewResult(event.text.strip())


async def publish(hooks, event: ReviewEvent) -> str:
    verdict = await hooks[ReviewEvent].fire(event)
    return verdict.event.text
'''


@pytest.fixture
def module(tmp_path, monkeypatch) -> ModuleType:
    file = tmp_path / "reviews.py"
    file.write_text(MODULE)
    spec = importlib.util.spec_from_file_location("reviews", file)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "reviews", made)
    spec.loader.exec_module(made)
    return made


@pytest.fixture
def hooks(module) -> Hooks:
    hooks = Hooks()
    hooks.declare(module)
    hooks.add(module.Reviewer())
    return hooks


async def test_it_fires_and_its_handler_is_found_by_the_event_class(hooks, module):
    assert await module.publish(hooks, module.ReviewEvent("ada", " hello ")) == "hello"
    assert await module.publish(hooks, module.ReviewEvent("bob", " hello ")) == " hello "


def test_the_reference_has_a_section_for_it(hooks):
    page = markdown(hooks.catalog)
    assert "[`review:text`](#hook-review-text)" in page
    assert "review:text(event: ReviewEvent, ctx: HookContext) -> ReviewResult" in page
    assert "Carries `author: str`, `text: str`." in page
    assert "A handler may return `ReviewResult`: `text: str | None = None`." in page
    assert "@hookimpl(ReviewEvent)\ndef review_text(self, event: ReviewEvent)" in page


def test_the_command_line_shows_it(hooks, capsys):
    show_hooks(hooks)
    assert "review:text" in capsys.readouterr().out
    show_hooks(hooks, "review:text")
    shown = capsys.readouterr().out
    assert "A text is about to be published." in shown
    assert "Reviewer" in shown
    show_hooks(hooks, turn=True)
    picture = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert picture[picture.index("output") + 1] == "review:text"
    show_hooks(hooks, "review:text", as_json=True)
    assert '"family": "review"' in capsys.readouterr().out


def test_coverage_finds_the_place_that_fires_it(hooks, module):
    [found] = [each for each in cover(hooks).hooks if each.hook == "review:text"]
    line = MODULE.splitlines().index("    verdict = await hooks[ReviewEvent].fire(event)")
    assert found.sites == [f"{module.__file__}:{line + 1}"]
    assert found.attached == ["Reviewer"]


def test_the_inspector_lists_it(hooks):
    assert "review:text" in str(catalogue(hooks, {}))

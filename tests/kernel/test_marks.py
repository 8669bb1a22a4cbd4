"""Which attributes of a plugin are marked: the quick search finds exactly what pluggy's own finds."""

import types
from functools import cached_property, partial, wraps

import pluggy
import pytest

from hookline.hooks.plugins import PROJECT, hookimpl


def given(self, event):
    """Not marked."""


class Base:
    @hookimpl
    def inherited(self, event): ...

    @hookimpl
    def hidden(self, event): ...


class Odd(Base):
    __slots__ = ("empty", "slot")
    hidden = None
    text = "text"
    part = partial(given, None)
    unmarked = given
    bound = hookimpl(Base().inherited.__func__).__get__(Base())

    @hookimpl
    def plain(self, event): ...

    @hookimpl(specname="tool_call")
    def __call__(self, event): ...

    @hookimpl
    @staticmethod
    def above_static(event): ...

    @staticmethod
    @hookimpl
    def below_static(event): ...

    @hookimpl
    @classmethod
    def above_class(cls, event): ...

    @classmethod
    @hookimpl
    def below_class(cls, event): ...

    @wraps(plain)
    def wrapped(self, event): ...

    @property
    def computed(self):
        pytest.fail("a property ran")

    @cached_property
    def computed_once(self):
        pytest.fail("a property ran")

    def __getattr__(self, name):
        pytest.fail(f"{name} was asked for")

    def __init__(self):
        self.own = hookimpl(lambda event: None)
        self.own_unmarked = lambda event: None
        self.own_bound = self.plain
        self.slot = self.plain


class Proxy(Odd):
    """Its attributes are not where its class says."""

    __class__ = property(lambda self: Base)  # type: ignore[assignment]

    def __dir__(self):
        return ["nowhere", *object.__dir__(self)]


def module():
    made = types.ModuleType("made")
    vars(made).update(marked=hookimpl(lambda event: None), unmarked=given, Base=Base, text="text")
    return made


@pytest.mark.parametrize(
    "plugin", [Odd(), Proxy(), module(), object()], ids=["odd", "proxy", "module", "bare"]
)
def test_the_marks_that_are_found_are_those_that_pluggy_finds(hooks, plugin):
    pluggys = pluggy.PluginManager(PROJECT)
    wanted = {name: pluggys.parse_hookimpl_opts(plugin, name) for name in dir(plugin)}
    assert {name: hooks.pm.parse_hookimpl_opts(plugin, name) for name in dir(plugin)} == wanted
    if type(plugin) is Odd:
        marked = {name for name, options in wanted.items() if options}
        assert marked == {
            "inherited", "bound", "plain", "__call__", "above_static", "below_static", "above_class",
            "below_class", "wrapped", "own", "own_bound", "slot",
        }  # fmt: skip

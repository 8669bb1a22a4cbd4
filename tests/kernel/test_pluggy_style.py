"""What people who know pluggy expect: bare specs, its error class, plugins of any kind."""

from dataclasses import dataclass

import pluggy
import pytest

from hookline import HookRunner, Hooks
from hookline import hooks as kernel
from hookline.hookspecs import Hooks as ShippedHooks
from hookline.plugin import hookimpl, hookspec


class Specs:
    @hookspec
    def names(self, prefix):
        """Collect names."""

    @hookspec(firstresult=True)
    def pick(self, prefix) -> "str":
        """Pick one."""


@pytest.fixture
def specified():
    made = Hooks()
    made.pm.add_hookspecs(Specs)
    return made


class Plugin:
    def __init__(self, name):
        self.name = name

    @hookimpl
    def names(self, prefix):
        return prefix + self.name

    @hookimpl
    def pick(self, prefix):
        return prefix + self.name


async def test_a_bare_spec_collects_newest_first(specified):
    specified.add(Plugin("a"), name="a")
    specified.add(Plugin("b"), name="b")
    assert await specified.call("names", prefix="-") == ["-b", "-a"]
    assert specified.pm.hook.names(prefix="-") == ["-b", "-a"]


async def test_firstresult_gives_the_first_answer(specified):
    specified.add(Plugin("a"), name="a")
    specified.add(Plugin("b"), name="b")
    assert await specified.call("pick", prefix="-") == "-b"
    assert Specs.pick.firstresult
    assert not Specs.names.firstresult


def test_a_bare_spec_stays_the_function_that_it_marks():
    assert Specs.names.__name__ == "names"
    assert Specs.names.__doc__ == "Collect names."


def test_firstresult_beside_another_reducer_is_refused():
    with pytest.raises(kernel.DeclarationError, match=r"contradicts the reducer `collect`"):
        hookspec(kernel.collect, firstresult=True)


def test_a_spec_of_something_that_is_no_reducer_is_refused():
    with pytest.raises(kernel.DeclarationError, match="needs a reducer such as `collect`, not 3"):
        hookspec(3)


def test_the_runner_of_other_systems_is_a_name_of_hooks():
    assert HookRunner is ShippedHooks


def test_a_registration_error_is_an_error_of_pluggys(specified):
    with pytest.raises(pluggy.PluginValidationError, match="implements no hook"):
        specified.add(object(), name="empty")


@dataclass
class Unhashable:
    name: str = ""

    @hookimpl
    def names(self, prefix):
        return prefix + self.name


async def test_a_dataclass_plugin_leaves_later_registrations_alone(specified):
    specified.add(Unhashable("a"), name="a")
    specified.add(Unhashable("b"), name="b")
    specified.add(Plugin("c"), name="c")
    assert await specified.call("names", prefix="-") == ["-c", "-b", "-a"]
    specified.remove("a")
    assert await specified.call("names", prefix="-") == ["-c", "-b"]


def test_two_equal_plugins_are_refused_with_the_fix(specified):
    specified.add(Unhashable("a"), name="a")
    with pytest.raises(kernel.RegistrationError, match=r"'b' equals plugin 'a'.*eq=False"):
        specified.add(Unhashable("a"), name="b")


async def test_unregister_removes_one_registration_of_a_callable(specified):
    def name(prefix):
        return prefix

    specified.register("names", name)
    specified.register("names", name)
    assert specified.unregister("names", name)
    assert await specified.call("names", prefix="-") == ["-"]
    assert specified.unregister("names", name)
    assert not specified.unregister("names", name)

import pytest

from hookline.specs import ToolSpec
from hookline.tools import DuplicateTool, Registry, Tool, UnknownTool, tool
from hookline.tools.registry import Declarations


def make(name: str, registry: Registry | None = None, **options) -> Tool:
    def work(n: int = 0) -> int:
        """Work."""
        return n

    return tool(name=name, registry=registry, **options)(work)


def test_tools_are_listed_in_the_order_they_came():
    registry = Registry([make("b"), make("a"), make("c")])
    assert registry.names() == ["b", "a", "c"]
    assert [t.name for t in registry.list()] == [t.name for t in registry] == ["b", "a", "c"]
    assert len(registry) == 3


def test_an_unknown_tool_offers_the_nearest_names():
    registry = Registry([make("read_file"), make("list_files")])
    with pytest.raises(UnknownTool, match=r"unknown tool 'read_fil'; did you mean 'read_file'"):
        registry.get("read_fil")


def test_an_unknown_tool_like_no_other_lists_what_there_is():
    with pytest.raises(UnknownTool, match=r"unknown tool 'zzz'; there are: read_file"):
        Registry([make("read_file")]).get("zzz")
    with pytest.raises(UnknownTool, match="there are no tools"):
        Registry().get("zzz")


def test_a_second_tool_of_a_name_is_refused_and_both_places_are_named():
    registry = Registry()

    def one() -> None: ...
    def two() -> None: ...

    first = tool(name="same", registry=registry)(one)
    with pytest.raises(DuplicateTool) as caught:
        tool(name="same", registry=registry)(two)
    message = str(caught.value)
    assert "two tools are named 'same'" in message
    assert "<locals>.one (" in message
    assert "<locals>.two (" in message
    assert message.count("test_registry.py:") == 2
    assert registry.get("same") is first


def test_a_namespace_keeps_names_apart():
    registry = Registry([make("same"), make("same", namespace="acme")])
    assert registry.names() == ["same", "acme.same"]


def test_a_tool_can_be_replaced_on_purpose_and_keeps_its_place():
    registry = Registry([make("a"), make("b")])
    other = make("a")
    registry.add(other, replace=True)
    assert registry.get("a") is other
    assert registry.names() == ["a", "b"]


def test_adding_the_same_tool_again_changes_nothing():
    one = make("a")
    registry = Registry([one])
    assert registry.add(one) is one
    assert len(registry) == 1


def test_schemas_are_what_a_model_is_told():
    registry = Registry([make("a"), make("b"), ToolSpec(name="c", description="C.")])
    assert registry.schemas(["c", "a"]) == [
        {"name": "c", "description": "C.", "parameters": {"type": "object", "properties": {}}},
        {"name": "a", "description": "Work.", "parameters": registry.get("a").parameters},
    ]
    assert [s["name"] for s in registry.schemas()] == ["a", "b", "c"]
    with pytest.raises(UnknownTool):
        registry.schemas(["nope"])


class TestDeclarations:
    def declare(self, registry: Declarations, module: str, name: str = "find", line: int = 1) -> Tool:
        source = f"{chr(10) * line}def {name}() -> None: ..."
        space = {"__name__": module}
        exec(compile(source, f"{module}.py", "exec"), space)
        return tool(name="find", registry=registry)(space[name])

    def test_two_modules_may_each_declare_a_tool_of_one_name(self):
        registry = Declarations()
        first, second = self.declare(registry, "one"), self.declare(registry, "two")
        assert registry.get("find") is second
        assert registry.brought_by("one") == [first]
        assert registry.brought_by("two") == [second]
        assert registry.remove("find") is second
        assert registry.get("find") is first
        assert registry.brought_by("two") == []

    def test_one_module_may_not(self):
        registry = Declarations()
        self.declare(registry, "one")
        with pytest.raises(DuplicateTool, match=r"one\.find .*one\.find_more"):
            self.declare(registry, "one", "find_more", 5)

    def test_what_is_declared_again_takes_the_place_of_the_older(self):
        registry = Declarations()
        self.declare(registry, "one")
        again = self.declare(registry, "one")
        assert registry.declared == [again]

    def test_a_package_has_the_tools_of_its_modules_and_no_others(self):
        registry = Declarations()
        own, _ = self.declare(registry, "acme.tools"), self.declare(registry, "acmetools")
        assert registry.brought_by("acme.plugin", "acme") == [own]
        assert registry.brought_by("acme.plugin") == []

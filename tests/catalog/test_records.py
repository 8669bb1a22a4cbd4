"""Events and results are dataclasses, although their `__init__` is generated late."""

import copy
import inspect
import pickle
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import pytest

from hookline import events
from hookline.hooks import record
from hookline.hooks.verdict import Record
from tests.tables import each_row

RECORDS = {
    name: kind
    for name, kind in vars(events).items()
    if isinstance(kind, type) and issubclass(kind, Record) and "__dataclass_fields__" in vars(kind)
}


@each_row("name", sorted(RECORDS))
def test_a_record_has_the_signature_and_the_values_of_a_dataclass(name):
    kind = RECORDS[name]
    own = [f for f in fields(kind) if f.init]
    assert is_dataclass(kind)
    assert list(inspect.signature(kind).parameters) == [f.name for f in own]
    with pytest.raises(TypeError, match=rf"{name}.__init__\(\) got an unexpected keyword"):
        kind(no_such_field=1)
    values: dict[str, Any] = {f.name: object() for f in own}
    if "action" in values:
        values["action"] = "continue"
    made = kind(**values)
    assert {f.name: getattr(made, f.name) for f in own} == values
    assert made == kind(*values.values()) == replace(made) == copy.copy(made)


@record
class Base(Record):
    first: int
    seen: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seen.append(self.first)


@record
class Derived(Base):
    second: int = 2


class Plain(Derived):
    __slots__ = ()


def test_a_record_inherits_fields_and_runs_post_init():
    assert (Derived(1, second=3).seen, Base(7).seen) == ([1], [7])
    assert (Plain(1).second, type(Plain(1))) == (2, Plain)
    assert Derived(1).seen is not Derived(1).seen
    assert pickle.loads(pickle.dumps(Derived(4))) == Derived(4)


def test_a_dataclass_may_inherit_from_a_record():
    @dataclass
    class Further(Base):
        third: str = "c"

    assert Further(1).third == "c"

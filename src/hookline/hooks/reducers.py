"""Reducers: how the results of one dispatch become its value.

A reducer is one class. `start`, `add`, `fail` and `end` are the source lines that the code generator
(`source.py`) puts into the function that dispatches a hook; the flags tell it, and the rest of
Hookline, what kind of reducer it is. In the lines, `_r` is the result just returned, `_i` the
implementation that returned it and `_e` the exception it raised; `HELPERS` and `names` have the rest.

A reducer of your own is a subclass, and `@hookspec(Largest())` declares a hook that uses it:

    class Largest(Reducer):
        name, returns = "largest", "the largest result"
        start = "_largest = None"
        add = "if _largest is None or _r > _largest: _largest = _r"
        end = "_largest"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, Self

from .verdict import Verdict, same, withheld_text

if TYPE_CHECKING:
    from .spec import HookSpec


class Order(Enum):
    """Which implementation runs first; `tryfirst` goes before and `trylast` after all others."""

    NEWEST = "newest"
    OLDEST = "oldest"


class Errors(Enum):
    """What a dispatch does when an implementation raises."""

    RAISE = "raise"
    SKIP = "skip"
    DENY = "deny"
    CAPTURE = "capture"


NEWEST, OLDEST = Order.NEWEST, Order.OLDEST
RAISE, SKIP, DENY, CAPTURE = Errors.RAISE, Errors.SKIP, Errors.DENY, Errors.CAPTURE


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one plugin's implementation, or the error it raised."""

    plugin_name: str
    success: bool
    result: Any = None
    error: Exception | None = None


class Reducer:
    """Base of all reducers. Two of the same class with equal attributes are the same reducer."""

    name: str = ""
    returns: str = ""
    """What a dispatch returns, in words; for the documentation."""
    errors: frozenset[Errors] = frozenset({RAISE, SKIP})
    """The error policies that a hook with this reducer may declare."""

    start: str = ""
    """Lines before the first call."""
    add: str = ""
    """Lines for one result; not run for None, unless `every` is set."""
    fail: str = ""
    """Lines for a failure that counts as a deny, or that `CAPTURE` keeps."""
    end: str = "None"
    """The expression for the reduced value."""
    names: Mapping[str, Any] = {}
    """What the lines refer to, apart from `HELPERS`."""

    stops: bool = False
    """A result ends the dispatch: `add` returns."""
    every: bool = False
    """None is a result like any other."""
    checked: bool = True
    """Results are checked against the hook's result type."""
    state: Literal["locals", "parameters", "list"] = "locals"
    """What `add` changes: variables of its own, only parameters of the hook (then a dispatch can
    resume after a failed call), or nothing but a list of the results."""
    carries: str | None = None
    """The parameter that holds the value passed from one implementation to the next."""
    renews: str | None = None
    """Another parameter that `add` sets; it is None when the caller does not pass it."""
    replaces: bool = False
    """Each result takes the place of the carried parameter."""
    guarded: bool = False
    """Guards run after all other implementations and judge the carried parameter."""
    rewritten: str = ""
    """The test for whether a guard changed what it judged, which was `_before`."""
    folds: bool = False
    """Results are folded into a `Verdict`, which is called `_v`."""
    decides: bool = False
    """The verdict allows, asks or denies; a result that cannot be read is a deny."""
    nested: bool = False
    """Implementations call each other through `call_next`; nothing is generated (`around.py`)."""
    passing: str | None = None
    """The parameter that `call_next` takes, if any."""
    firstresult: bool = False
    """pluggy's `firstresult`: the reduced value may be None."""
    wrappable: bool = True
    """Generator wrappers may replace the reduced value."""
    reduced: type | None = None
    """The class of the reduced value, if it is not the hook's own result type."""

    def check(self, spec: HookSpec) -> str | None:
        """Return why this reducer cannot serve this hook, or None."""
        return None

    def can_guard(self, spec: HookSpec) -> bool:
        """Return whether a failed guard has something to deny or withhold."""
        return self.denial(spec) is not None

    def denial(self, spec: HookSpec) -> Any:
        """Return the value that a failure counts as under `DENY`; None if there is no such value."""
        return None

    def __call__(self, *args: Any, **options: Any) -> Self:
        """Return the same reducer with other options: `first(deny="reject")`, `join(", ")`."""
        return type(self)(*args, **options)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __str__(self) -> str:
        return self.name


class First(Reducer):
    """The first value that is not None; later implementations do not run.

    `deny` is the value that a failure counts as under `DENY`; for a bool it is False.
    """

    name, returns = "first", "the first value that is not None"
    errors = frozenset({RAISE, SKIP, DENY})
    add = "return _r"
    fail = "return _denial"
    stops = firstresult = True
    state = "parameters"

    def __init__(self, deny: Any = None) -> None:
        self.deny = deny

    def check(self, spec: HookSpec) -> str | None:
        if self.deny is not None and not spec.accepts(self.deny):
            return f"first(deny={self.deny!r}) is not of the result type"
        if spec.errors is DENY and not self.can_guard(spec):
            return "DENY on `first` needs a result type of bool, or first(deny=...)"
        return None

    def denial(self, spec: HookSpec) -> Any:
        return False if self.deny is None and spec.classes == (bool,) else self.deny


class Collect(Reducer):
    """A list of the results, in run order; with `keep_none`, None is in it too."""

    name, returns = "collect", "a list, in run order"
    start = "_out = []"
    add = "_out.append(_r)"
    fail = "_out.append(_denial)"
    end = "_out"
    state = "list"
    reduced = list

    def __init__(self, keep_none: bool = False) -> None:
        self.keep_none = self.every = keep_none


class Flatten(Reducer):
    """One list of many; with `unique`, the first item seen for each value of that attribute.

    With `single`, a result that is neither a list nor a tuple counts as a list of one.
    """

    name, returns = "flatten", "one list out of many lists"
    start = "_out = []"
    add = "_out.extend(_r)"
    end = "_out"
    reduced = list

    def __init__(self, unique: str | None = None, single: bool = False) -> None:
        self.unique = unique
        self.single = single
        if unique:
            self.start = "_out = {}"
            self.add = f"_add_unique(_out, _r, {unique!r})"
            self.end = "list(_out.values())"
        elif single:
            self.add = "_out.extend(_r if isinstance(_r, (list, tuple)) else (_r,))"

    def check(self, spec: HookSpec) -> str | None:
        if self.single and self.unique:
            return "`flatten` takes unique= or single=, not both"
        fits = self.single or spec.returns_only(list)
        return None if fits else "`flatten` needs a result type of list"

    def __str__(self) -> str:
        return f"flatten(unique={self.unique})" if self.unique else self.name


class Merge(Reducer):
    """One dict; where two set the same key, the value of the higher-priority plugin stands.

    `deep` merges dicts inside dicts; `into` names the parameter that carries what was merged so far
    to the next implementation.
    """

    name, returns = "merge", "one dict; on a clash the higher-priority plugin's value stands"
    start = "_out = []"
    add = "_out.append(_r)"
    reduced = dict

    def __init__(self, deep: bool = False, into: str | None = None) -> None:
        self.deep = deep
        self.into = self.carries = into
        merge = "_merge_deep" if deep else "_merge"
        self.end = into or f"{merge}(_lowest_first(_out))"
        if into:
            self.start = ""
            self.add = f"{into} = {merge}(({into}, _r))"

    def check(self, spec: HookSpec) -> str | None:
        if not spec.returns_only(dict):
            return "`merge` needs a result type of dict"
        if self.into is None:
            return None
        if self.into not in spec.params:
            return f"merge(into={self.into!r}) names no parameter of the hook"
        if spec.order is not OLDEST:
            return "merge(into=...) needs order=OLDEST: what came before is what stands below"
        return None

    def __str__(self) -> str:
        return "merge(deep)" if self.deep else self.name


class Join(Reducer):
    """The strings that are not empty, joined by a separator, lowest priority first."""

    name, returns = "join", "the truthy strings joined by a separator, lowest priority first"
    start = "_out = []"
    add = "if _r: _out.append(_r)"
    reduced = str

    def __init__(self, separator: str = "\n\n") -> None:
        self.separator = separator
        self.end = f"{separator!r}.join(_lowest_first(_out))"

    def check(self, spec: HookSpec) -> str | None:
        return None if spec.returns_only(str) else "`join` needs a result type of str"


class Chain(Reducer):
    """One parameter, replaced by each result for the next implementation.

    `carrier` names another parameter that holds the same value as an attribute: it is updated too.
    A guard that fails withholds the value.
    """

    name, returns = "chain", "the parameter after each result has replaced it for the next"
    fail = "return _withheld(_e, _i)"
    state = "parameters"
    replaces = guarded = True

    def __init__(self, parameter: str, carrier: str | None = None) -> None:
        self.parameter = self.carries = self.end = parameter
        self.carrier = self.renews = carrier
        self.add = f"{parameter} = _r"
        self.rewritten = f"not _same(_before, {parameter})"
        if carrier:
            self.add += f"\n{carrier} = _renew({carrier}, {parameter!r}, _r)"

    def check(self, spec: HookSpec) -> str | None:
        if spec.event is not None:
            return "`chain` needs a function-shaped hook; an event is rewritten by patch"
        for parameter in (self.parameter, self.carrier):
            if parameter is not None and parameter not in spec.params:
                return f"chain names {parameter!r}, which is no parameter of the hook"
        return None

    def can_guard(self, spec: HookSpec) -> bool:
        return True

    def __str__(self) -> str:
        return f"chain({self.parameter})"


class Patch(Reducer):
    """The event, with the fields that each result sets, as a `Verdict`.

    A guard that fails withholds `field`: its value becomes the error text, or what `withheld` makes
    of that text.
    """

    name, returns = "patch", "a Verdict: the event after each result's set fields were applied"
    start = "_v = _Verdict(event)"
    add = "event = _v.apply(_r, _i)"
    fail = "_v.withhold(_e, _i, _field, _wrap)\nreturn _v"
    end = "_v"
    carries = "event"
    rewritten = "_before is not event"
    folds = guarded = True
    reduced = Verdict

    def __init__(self, field: str = "", withheld: Callable[[str], Any] | None = None) -> None:
        self.field = field
        self.withheld = withheld
        self.names = {"_field": field, "_wrap": withheld}

    def check(self, spec: HookSpec) -> str | None:
        if spec.event is None:
            return f"`{self.name}` needs an event"
        if not all(hasattr(cls, "verdict") for cls in spec.classes or (object,)):
            return f"`{self.name}` needs Event[...] of a result class with verdict()"
        if self.field and self.field not in getattr(spec.event, "__dataclass_fields__", {}):
            return f"{self.name}({self.field!r}) names no field of {spec.event.__name__}"
        return None

    def can_guard(self, spec: HookSpec) -> bool:
        return bool(self.field)  # without a field there is nothing to withhold


class Gate(Patch):
    """Like `patch`, with a decision: allow, ask or deny. All handlers run; the strictest one wins."""

    name, returns = "gate", "a Verdict: as patch, and the strictest decision of all"
    errors = frozenset({SKIP, DENY})
    fail = "_v.fail(_e, _i)"
    decides = True
    wrappable = False

    def can_guard(self, spec: HookSpec) -> bool:
        return True


class Notify(Reducer):
    """None: results are ignored."""

    name, returns = "notify", "None; results are not looked at"
    checked = False
    state = "parameters"


class Outcomes(Reducer):
    """A list with one `Outcome` for each implementation, failed ones included."""

    name, returns = "outcomes", "a list of Outcome(plugin_name, success, result, error)"
    errors = frozenset({CAPTURE})
    start = "_out = []"
    add = "_out.append(_Outcome(_i.name, True, _r))"
    fail = "_out.append(_Outcome(_i.name, False, None, _e))"
    end = "_out"
    every = True
    wrappable = False


class Around(Reducer):
    """What the outermost implementation returns; each one is given `call_next`.

    `passing` names the parameter that `call_next` takes; without it, `call_next()` takes none.
    """

    name, returns = "around", "what the outermost returns; each is given call_next"
    errors = frozenset({RAISE})
    stops = nested = True
    wrappable = False

    def __init__(self, passing: str | None = None) -> None:
        self.passing = passing

    def check(self, spec: HookSpec) -> str | None:
        if "call_next" not in spec.params:
            return "`around` needs a parameter named call_next"
        if self.passing is not None and self.passing not in spec.params:
            return f"around(passing={self.passing!r}) names no parameter of the hook"
        return None


first, collect, flatten, merge, join, chain = First(), Collect(), Flatten(), Merge(), Join(), Chain
patch, gate, notify, outcomes, around = Patch(), Gate(), Notify(), Outcomes(), Around()

REDUCERS: tuple[type[Reducer], ...] = (
    First, Collect, Flatten, Merge, Join, Chain, Patch, Gate, Notify, Outcomes, Around,
)  # fmt: skip


def lowest_first(spec: HookSpec) -> Callable[[list[Any]], Iterable[Any]]:
    """Return what puts results in ascending priority: the newest implementation has the highest."""
    return reversed if spec.order is NEWEST else iter


def add_unique(found: dict[Any, Any], items: Iterable[Any], attribute: str) -> None:
    """Add items by the value of an attribute: the first of each value, and all items or none."""
    fresh: dict[Any, Any] = {}
    for item in items:
        fresh.setdefault(getattr(item, attribute), item)
    for key, item in fresh.items():
        found.setdefault(key, item)


def merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge dicts; later ones overwrite."""
    out: dict[str, Any] = {}
    for part in parts:
        out.update(part)
    return out


def merged_deep(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge dicts and the dicts inside them; later ones overwrite."""
    out: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            both: list[Any] = [each for each in (out.get(key), value) if isinstance(each, dict)]
            out[key] = merged_deep(both) if isinstance(value, dict) else value
    return out


def renewed(record: Any, attribute: str, value: Any) -> Any:
    """Copy an immutable record with one attribute changed."""
    return None if record is None else replace(record, **{attribute: value})


HELPERS: Mapping[str, Any] = {
    "_Verdict": Verdict, "_Outcome": Outcome, "_merge": merged, "_merge_deep": merged_deep,
    "_add_unique": add_unique, "_renew": renewed, "_same": same, "_withheld": withheld_text,
}  # fmt: skip
"""What the lines of the reducers refer to. `_lowest_first` puts results in ascending priority, and
`_denial` is the value that a failure counts as."""

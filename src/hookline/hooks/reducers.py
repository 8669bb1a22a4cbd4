"""The eleven reducers: what becomes of the results of one dispatch.

A reducer is a small value. It says in words what it does (for the documentation), which error
policies make sense with it, and, as the few source lines that `dispatch.py` weaves around each
call, how it folds. In those lines `_r` is the value just returned and `_i` stands for the
implementation that returned it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, cast

from .errors import DeclarationError
from .verdict import Verdict

if TYPE_CHECKING:
    from .spec import HookSpec


class Order(Enum):
    """Who runs first; `tryfirst` goes before and `trylast` after the rest under both."""

    NEWEST = "newest"
    OLDEST = "oldest"


class Errors(Enum):
    """What becomes of an implementation that raises."""

    RAISE = "raise"
    SKIP = "skip"
    DENY = "deny"
    CAPTURE = "capture"


NEWEST, OLDEST = Order.NEWEST, Order.OLDEST
RAISE, SKIP, DENY, CAPTURE = Errors.RAISE, Errors.SKIP, Errors.DENY, Errors.CAPTURE


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one plugin's implementation came to: a result or an error, never both."""

    plugin_name: str
    success: bool
    result: Any = None
    error: Exception | None = None


class Reducer:
    """What becomes of the results; subclasses are the eleven ways there are.

    A plain class on purpose: a dozen dataclasses would double the cost of importing the kernel.
    """

    options: tuple[Any, ...] = ()
    """What it was made with; two of one class with equal options are the same reducer."""

    name: ClassVar[str] = ""
    returns: ClassVar[str] = ""
    """What a dispatch returns, in words."""
    stops: ClassVar[bool] = False
    """Whether a result keeps later implementations from running."""
    errors: ClassVar[frozenset[Errors]] = frozenset({RAISE, SKIP})
    """The error policies that mean something here."""
    wrappable: ClassVar[bool] = True
    """Whether generator wrappers may replace the reduced value."""
    folds: ClassVar[bool] = False
    """Whether a dispatch is judged as a `Verdict`."""
    guarded: ClassVar[bool] = False
    """Whether guards have a meaning here and run after all others."""
    checked: ClassVar[bool] = True
    """Whether results are looked at, and so checked against the hook's result type."""
    reduced: ClassVar[type | None] = None
    """The class of the reduced value where it is not the hook's own result type."""

    @property
    def every(self) -> bool:
        """Whether a None is a result like any other."""
        return False

    def check(self, spec: HookSpec) -> str | None:
        """Say why this reducer cannot serve this hook, or None when it can."""
        return None

    def can_guard(self, spec: HookSpec) -> bool:
        """Whether a failed guard has something to deny or withhold."""
        return self.guarded

    def setup(self) -> Sequence[str]:
        """Source lines before the first call."""
        return ()

    def step(self) -> Sequence[str]:
        """Source lines for one result."""
        return ()

    def end(self) -> str:
        """The expression for the reduced value."""
        return "None"

    def names(self, spec: HookSpec) -> dict[str, Any]:
        """What the source lines refer to."""
        return {}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.options == getattr(other, "options", None)

    def __hash__(self) -> int:
        return hash((type(self), self.options))

    def __str__(self) -> str:
        return self.name


class First(Reducer):
    """The first value that is not None; the rest do not run."""

    name: ClassVar[str] = "first"
    returns: ClassVar[str] = "the first value that is not None"
    stops: ClassVar[bool] = True
    errors: ClassVar[frozenset[Errors]] = frozenset({RAISE, SKIP, DENY})

    def __init__(self, deny: Any = None) -> None:
        self.deny = deny
        self.options = (deny,)

    def __call__(self, *, deny: Any) -> First:
        """The same, with the value that a failure counts as under DENY."""
        return First(deny)

    def check(self, spec: HookSpec) -> str | None:
        if self.deny is not None and not spec.accepts(self.deny):
            return f"first(deny={self.deny!r}) is not of the result type"
        if spec.errors is DENY and not self.can_guard(spec):
            return "DENY on `first` needs a result type of bool, or first(deny=...)"
        return None

    def can_guard(self, spec: HookSpec) -> bool:
        return self.denial(spec) is not None

    def denial(self, spec: HookSpec) -> Any:
        """The value that a failure counts as: what was declared, or False for a bool."""
        return False if self.deny is None and spec.classes == (bool,) else self.deny

    def step(self) -> Sequence[str]:
        return ("return _r",)


class Collect(Reducer):
    """A list of the results, in run order."""

    name: ClassVar[str] = "collect"
    returns: ClassVar[str] = "a list, in run order"
    reduced: ClassVar[type | None] = list

    def __init__(self, keep_none: bool = False) -> None:
        self.keep_none = keep_none
        self.options = (keep_none,)

    def __call__(self, *, keep_none: bool = False) -> Collect:
        """The same, keeping each None where `keep_none` is set."""
        return Collect(keep_none)

    @property
    def every(self) -> bool:
        return self.keep_none

    def setup(self) -> Sequence[str]:
        return ("_out = []",)

    def step(self) -> Sequence[str]:
        return ("_out.append(_r)",)

    def end(self) -> str:
        return "_out"


class Flatten(Reducer):
    """One list out of many, optionally unique by an attribute (first seen wins)."""

    name: ClassVar[str] = "flatten"
    returns: ClassVar[str] = "one list out of many lists"
    reduced: ClassVar[type | None] = list

    def __init__(self, unique: str | None = None) -> None:
        self.unique = unique
        self.options = (unique,)

    def __call__(self, *, unique: str | None = None) -> Flatten:
        """The same, keeping the first item seen for each value of the attribute `unique`."""
        return Flatten(unique)

    def check(self, spec: HookSpec) -> str | None:
        return None if spec.returns_only(list) else "`flatten` needs a result type of list"

    def setup(self) -> Sequence[str]:
        return ("_out = []", "_seen = set()") if self.unique else ("_out = []",)

    def step(self) -> Sequence[str]:
        return ("_add(_out, _seen, _r)",) if self.unique else ("_out.extend(_r)",)

    def end(self) -> str:
        return "_out"

    def names(self, spec: HookSpec) -> dict[str, Any]:
        return {"_add": unique_by(self.unique)} if self.unique else {}

    def __str__(self) -> str:
        return f"flatten(unique={self.unique})" if self.unique else self.name


class Merge(Reducer):
    """One dict; on a clash the higher-priority implementation's value stands."""

    name: ClassVar[str] = "merge"
    returns: ClassVar[str] = "one dict; on a clash the higher-priority plugin's value stands"
    reduced: ClassVar[type | None] = dict

    def __init__(self, deep: bool = False, into: str | None = None) -> None:
        self.deep = deep
        self.into = into
        self.options = (deep, into)

    def __call__(self, *, deep: bool = False, into: str | None = None) -> Merge:
        """The same; `deep` merges dicts in dicts, `into` names the parameter that carries
        what was merged so far to the next implementation.
        """
        return Merge(deep, into)

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

    def setup(self) -> Sequence[str]:
        return () if self.into else ("_out = []",)

    def step(self) -> Sequence[str]:
        return (f"{self.into} = _merge(({self.into}, _r))",) if self.into else ("_out.append(_r)",)

    def end(self) -> str:
        """Lowest priority first, so that higher ones overwrite."""
        return self.into or "_merge(_lowest_first(_out))"

    def names(self, spec: HookSpec) -> dict[str, Any]:
        return {
            "_merge": merged_deep if self.deep else merged,
            "_lowest_first": lowest_first(spec),
        }

    def __str__(self) -> str:
        return "merge(deep)" if self.deep else self.name


class Join(Reducer):
    """The truthy strings joined by a separator, lowest priority first."""

    name: ClassVar[str] = "join"
    returns: ClassVar[str] = "the truthy strings joined by a separator, lowest priority first"
    reduced: ClassVar[type | None] = str

    def __init__(self, separator: str = "\n\n") -> None:
        self.separator = separator
        self.options = (separator,)

    def __call__(self, separator: str = "\n\n") -> Join:
        """The same, with another separator."""
        return Join(separator)

    def check(self, spec: HookSpec) -> str | None:
        return None if spec.returns_only(str) else "`join` needs a result type of str"

    def setup(self) -> Sequence[str]:
        return ("_out = []",)

    def step(self) -> Sequence[str]:
        return ("if _r:", "    _out.append(_r)")

    def end(self) -> str:
        return "_separator.join(_lowest_first(_out))"

    def names(self, spec: HookSpec) -> dict[str, Any]:
        return {"_separator": self.separator, "_lowest_first": lowest_first(spec)}


class Chain(Reducer):
    """One parameter, replaced by each result for the next implementation.

    `carrier` names a parameter that holds the same value as an attribute: it is renewed too.
    """

    name: ClassVar[str] = "chain"
    returns: ClassVar[str] = "the parameter after each result has replaced it for the next"
    guarded: ClassVar[bool] = True

    def __init__(self, parameter: str, carrier: str | None = None) -> None:
        self.parameter = parameter
        self.carrier = carrier
        self.options = (parameter, carrier)

    def check(self, spec: HookSpec) -> str | None:
        if spec.event is not None:
            return "`chain` needs a function-shaped hook; an event is rewritten by patch"
        for parameter in (self.parameter, self.carrier):
            if parameter is not None and parameter not in spec.params:
                return f"chain names {parameter!r}, which is no parameter of the hook"
        return None

    def step(self) -> Sequence[str]:
        lines = [f"{self.parameter} = _r"]
        if self.carrier:
            lines.append(f"{self.carrier} = _renew({self.carrier}, _r)")
        return lines

    def end(self) -> str:
        return self.parameter

    def names(self, spec: HookSpec) -> dict[str, Any]:
        return {"_renew": renewing(self.parameter)} if self.carrier else {}

    def __str__(self) -> str:
        return f"chain({self.parameter})"


class Patch(Reducer):
    """The event after each result's set fields were applied, as a `Verdict`.

    `field` is what a failed guard withholds; `withheld` makes the stand-in from the error text.
    """

    name: ClassVar[str] = "patch"
    returns: ClassVar[str] = "a Verdict: the event after each result's set fields were applied"
    folds: ClassVar[bool] = True
    guarded: ClassVar[bool] = True
    reduced: ClassVar[type | None] = Verdict

    def __init__(self, field: str = "", withheld: Callable[[str], Any] | None = None) -> None:
        self.field = field
        self.withheld = withheld
        self.options = (field, withheld)

    def __call__(self, field: str, withheld: Callable[[str], Any] | None = None) -> Patch:
        """The same for the event's field that carries the value."""
        return type(self)(field, withheld)

    def check(self, spec: HookSpec) -> str | None:
        if spec.event is None:
            return f"`{self.name}` needs an event"
        if not all(hasattr(cls, "verdict") for cls in spec.classes or (object,)):
            return f"`{self.name}` needs Event[...] of a result class with verdict()"
        if self.field and self.field not in getattr(spec.event, "__dataclass_fields__", {}):
            return f"{self.name}({self.field!r}) names no field of {spec.event.__name__}"
        return None

    def can_guard(self, spec: HookSpec) -> bool:
        return bool(self.field)  # something must be there to withhold

    def setup(self) -> Sequence[str]:
        return ("_v = _Verdict(event)",)

    def step(self) -> Sequence[str]:
        return ("event = _v.apply(_r, _i)",)

    def end(self) -> str:
        return "_v"

    def names(self, spec: HookSpec) -> dict[str, Any]:
        return {"_Verdict": Verdict}


class Gate(Patch):
    """As `patch`, and a decision: allow, ask or deny; every handler runs, the strictest wins."""

    name: ClassVar[str] = "gate"
    returns: ClassVar[str] = "a Verdict: as patch, and the strictest decision of all"
    errors: ClassVar[frozenset[Errors]] = frozenset({SKIP, DENY})
    wrappable: ClassVar[bool] = False

    def can_guard(self, spec: HookSpec) -> bool:
        return True


class Notify(Reducer):
    """None: results are not looked at."""

    name: ClassVar[str] = "notify"
    returns: ClassVar[str] = "None; results are not looked at"
    checked: ClassVar[bool] = False


class Outcomes(Reducer):
    """A list with one `Outcome` for each implementation, failed ones too."""

    name: ClassVar[str] = "outcomes"
    returns: ClassVar[str] = "a list of Outcome(plugin_name, success, result, error)"
    errors: ClassVar[frozenset[Errors]] = frozenset({CAPTURE})
    wrappable: ClassVar[bool] = False

    @property
    def every(self) -> bool:
        return True

    def setup(self) -> Sequence[str]:
        return ("_out = []",)

    def step(self) -> Sequence[str]:
        return ("_out.append(_Outcome(_i.name, True, _r))",)

    def end(self) -> str:
        return "_out"

    def names(self, spec: HookSpec) -> dict[str, Any]:
        return {"_Outcome": Outcome}


class Around(Reducer):
    """What the outermost implementation returns; each is given `call_next`.

    `passing` names the parameter that `call_next` takes; without it `call_next()` takes none.
    """

    name: ClassVar[str] = "around"
    returns: ClassVar[str] = "what the outermost returns; each is given call_next"
    stops: ClassVar[bool] = True
    errors: ClassVar[frozenset[Errors]] = frozenset({RAISE})
    wrappable: ClassVar[bool] = False

    def __init__(self, passing: str | None = None) -> None:
        self.passing = passing
        self.options = (passing,)

    def __call__(self, *, passing: str) -> Around:
        """The same, where `call_next(value)` replaces the parameter `passing` for the inner ones."""
        return Around(passing)

    def check(self, spec: HookSpec) -> str | None:
        if "call_next" not in spec.params:
            return "`around` needs a parameter named call_next"
        if self.passing is not None and self.passing not in spec.params:
            return f"around(passing={self.passing!r}) names no parameter of the hook"
        return None


first = First()
collect = Collect()
flatten = Flatten()
merge = Merge()
join = Join()
patch = Patch()
gate = Gate()
notify = Notify()
outcomes = Outcomes()
around = Around()


def chain(parameter: str, carrier: str | None = None) -> Chain:
    """Rewrite `parameter` from one implementation to the next."""
    return Chain(parameter, carrier)


REDUCERS: tuple[type[Reducer], ...] = (
    First, Collect, Flatten, Merge, Join, Chain, Patch, Gate, Notify, Outcomes, Around,
)  # fmt: skip


def legal(reducer: Reducer, errors: Errors) -> None:
    """Refuse an error policy that means nothing with this reducer."""
    if errors not in reducer.errors:
        fitting = ", ".join(e.name for e in Errors if e in reducer.errors)
        raise DeclarationError(
            f"errors={errors.name} means nothing with `{reducer.name}`; use {fitting}"
        )


def lowest_first(spec: HookSpec) -> Callable[[list[Any]], Iterable[Any]]:
    """Put results in ascending priority: under NEWEST the first to run has the highest."""
    return reversed if spec.order is NEWEST else iter


def unique_by(attribute: str | None) -> Callable[[list[Any], set[Any], Iterable[Any]], None]:
    """Add items to a list, each value of the attribute once."""

    def add(out: list[Any], seen: set[Any], items: Iterable[Any]) -> None:
        fresh: dict[Any, Any] = {}
        for item in items:
            fresh.setdefault(getattr(item, attribute or ""), item)
        for key, item in fresh.items():  # all of a list, or nothing
            if key not in seen:
                seen.add(key)
                out.append(item)

    return add


def merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Put dicts together; later ones overwrite."""
    out: dict[str, Any] = {}
    for part in parts:
        out.update(part)
    return out


def merged_deep(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Put dicts together, dicts inside them too; later ones overwrite."""
    out: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            below = out.get(key)
            if isinstance(value, dict):
                out[key] = merged_deep(
                    cast("list[Any]", [below, value] if isinstance(below, dict) else [value])
                )
            else:
                out[key] = value
    return out


def renewing(attribute: str) -> Callable[[Any, Any], Any]:
    """Make a copy of an immutable record with one attribute changed."""

    def renew(record: Any, value: Any) -> Any:
        return record if record is None else replace(record, **{attribute: value})

    return renew

"""A small catalogue with one hook of every kind, for the kernel's tests."""

from dataclasses import dataclass, field
from typing import Any, Literal

from hookline.hooks import (
    DENY,
    OLDEST,
    SKIP,
    Answer,
    Catalog,
    Decision,
    Event,
    EventResult,
    Family,
    HookRegistry,
    Ruling,
    around,
    chain,
    collect,
    event,
    first,
    flatten,
    gate,
    hookspec,
    join,
    merge,
    notify,
    outcomes,
    patch,
)
from hookline.hooks.reducers import CAPTURE


@dataclass(frozen=True)
class Order:
    item: str
    options: dict[str, Any] = field(default_factory=dict)


class Shop(Family, name="shop"):
    @hookspec(first, scope="session_id")
    def greet(self, guest: str, session_id: str) -> Answer[str]:
        """Say hello."""

    @hookspec(collect, order=OLDEST, errors=SKIP)
    def tally(self, guest: str) -> Answer[int]:
        """Count something."""

    @hookspec(collect(keep_none=True))
    def votes(self, guest: str) -> Answer[str]:
        """Ask everybody."""

    @hookspec(flatten)
    def dishes(self, guest: str) -> Answer[list[str]]:
        """List what there is."""

    @hookspec(flatten(unique="item"), sync=True)
    def stock(self) -> list[Order] | None:
        """List what is in stock."""

    @hookspec(merge)
    def state(self, guest: str) -> Answer[dict[str, Any]]:
        """Remember things."""

    @hookspec(merge(deep=True, into="config"), order=OLDEST, sync=True)
    def settings(self, config: dict[str, Any]) -> dict[str, Any] | None:
        """Add settings."""

    @hookspec(join, sync=True)
    def sign(self, guest: str) -> str | None:
        """Write on the sign."""

    @hookspec(chain("options", carrier="order"), order=OLDEST, errors=SKIP, match="dish")
    def prepare(self, order: Order, dish: str, options: dict[str, Any]) -> Answer[dict[str, Any]]:
        """Change the options."""

    @hookspec(chain("text"), order=OLDEST)
    def polish(self, text: str) -> Answer[str]:
        """Rewrite a text."""

    @hookspec(notify, order=OLDEST, errors=SKIP)
    def bell(self, guest: str) -> Answer[Any]:
        """Ring."""

    @hookspec(outcomes, order=OLDEST, errors=CAPTURE)
    def opening(self, day: str) -> Answer[Any]:
        """Open."""

    @hookspec(outcomes, order=OLDEST, errors=CAPTURE, sync=True)
    def closing(self, day: str) -> Any:
        """Close."""

    @hookspec(around)
    def serve(self, order: Order, call_next: Any) -> Answer[str]:
        """Serve."""

    @hookspec(around(passing="order"))
    def cook(self, order: Order, call_next: Any) -> Answer[str]:
        """Cook."""

    @hookspec(first, order=OLDEST, errors=DENY)
    def admit(self, guest: str) -> Answer[bool]:
        """Let in."""

    @hookspec(first(deny="reject"), errors=DENY)
    def approve(self, request: str) -> Answer[Literal["approve", "reject"]]:
        """Approve."""

    @hookspec(first, sync=True, excludes=("stream_menu",))
    def menu(self) -> str | None:
        """The menu."""

    @hookspec(first, sync=True, excludes=("menu",))
    def stream_menu(self) -> str | None:
        """The menu, piece by piece."""


@dataclass
class OrderResult(EventResult):
    block: bool = False
    reason: str | None = None
    dish: str | None = None
    ask: str | None = None
    tip: int | None = None

    def verdict(self) -> Ruling:
        decision = Decision.DENY if self.block else Decision.ASK if self.ask else Decision.ALLOW
        return Ruling(decision, self.reason or self.ask, self.set_fields("block", "reason", "ask"))


@event(gate, family="shop", match="dish")
@dataclass(slots=True)
class OrderEvent(Event[OrderResult]):
    """An order arrives."""

    type: Literal["order"] = field(default="order", init=False)
    dish: str = ""
    table: int = 0


@dataclass
class PlateResult(EventResult):
    content: str | None = None
    label: str | None = None


@event(patch("content"), family="shop")
@dataclass(slots=True)
class PlateEvent(Event[PlateResult]):
    """A plate goes out."""

    type: Literal["plate"] = field(default="plate", init=False)
    content: str = ""


@event(notify, family="shop")
@dataclass(slots=True)
class DoneEvent(Event[None]):
    """All done."""

    type: Literal["shop:done"] = field(default="shop:done", init=False)
    guest: str = ""


@dataclass
class Ctx:
    session_id: str = ""


CATALOG = Catalog(Shop, OrderEvent, PlateEvent, DoneEvent)


def shop(**options: Any) -> HookRegistry:
    return HookRegistry(CATALOG, **options)

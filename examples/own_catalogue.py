"""The kernel alone, in a program that has nothing to do with agents: a small web shop's checkout.

Run it: python examples/own_catalogue.py
"""

from dataclasses import dataclass, field
from typing import Literal

from hookline import Hooks
from hookline.hooks import (
    Catalog,
    Decision,
    Event,
    EventResult,
    Family,
    Ruling,
    event,
    gate,
    hookimpl,
    hookspec,
    join,
)


class Shop(Family, name="shop"):
    @hookspec(join("\n"), sync=True)
    def receipt(self, items: list[str]) -> str | None:
        """Add lines to the receipt."""


@dataclass
class CheckoutResult(EventResult):
    refuse: str | None = None
    price: float | None = None

    def verdict(self) -> Ruling:
        decision = Decision.DENY if self.refuse else Decision.ALLOW
        return Ruling(decision, self.refuse, self.set_fields("refuse"))


@event(gate, family="shop")
@dataclass(slots=True)
class CheckoutEvent(Event[CheckoutResult]):
    """Somebody wants to pay."""

    type: Literal["checkout"] = field(default="checkout", init=False)
    items: list[str] = field(default_factory=list)
    price: float = 0.0


class Discount:
    @hookimpl
    def checkout(self, event):
        if len(event.items) > 2:
            return CheckoutResult(price=event.price * 0.9)
        return None

    @hookimpl
    def receipt(self, items):
        return "10 % off for three or more" if len(items) > 2 else None


def main() -> None:
    hooks = Hooks(Catalog(Shop, CheckoutEvent))
    hooks.add(Discount())
    hooks.register("receipt", lambda items: ", ".join(items))
    hooks.register(
        CheckoutEvent, lambda e: CheckoutResult(refuse="empty basket") if not e.items else None
    )

    for items in (["tea", "milk", "sugar"], []):
        verdict = hooks.call_sync(CheckoutEvent(items=items, price=10.0))
        print(verdict.decision.name, verdict.reason or verdict.event.price)
    print(hooks.call_sync("receipt", items=["tea", "milk", "sugar"]))


if __name__ == "__main__":
    main()

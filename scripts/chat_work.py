"""What the pictures of the chat show: a repository with a fault, and a model that mends it."""

from typing import Any

from hookline.models import Call, Turn

BASKET = """\"\"\"A basket of goods.\"\"\"


def total(prices: list[float], discount: float = 0.0) -> float:
    \"\"\"What the goods cost together, less a discount from 0 to 1.\"\"\"
    whole = 0.0
    for price in prices:
        whole += price
    return round(whole * discount, 2)


def cheapest(prices: list[float]) -> float:
    \"\"\"The lowest price.\"\"\"
    return min(prices)
"""
TESTS = """import unittest

from shop.basket import cheapest, total


class Basket(unittest.TestCase):
    def test_without_a_discount_everything_is_paid(self):
        self.assertEqual(total([1.0, 2.5]), 3.5)

    def test_a_discount_is_taken_off(self):
        self.assertEqual(total([10.0], discount=0.25), 7.5)

    def test_the_cheapest(self):
        self.assertEqual(cheapest([3.0, 1.0]), 1.0)
"""
FILES = {
    "shop/__init__.py": "",
    "shop/basket.py": BASKET,
    "tests/__init__.py": "",
    "tests/test_basket.py": TESTS,
}

OLD = """    whole = 0.0
    for price in prices:
        whole += price
    return round(whole * discount, 2)"""
NEW = "    return round(sum(prices) * (1 - discount), 2)"
ANSWER = """All three tests pass now.

## What was wrong

`total` in `shop/basket.py` returned `whole * discount`: without a discount that is **nothing at all**.

| call | before | now |
|---|---|---|
| `total([1.0, 2.5])` | 0.0 | 3.5 |
| `total([10.0], 0.25)` | 2.5 | 7.5 |

1. The loop is gone, `sum` does the same.
2. The discount is taken off:

```python
return round(sum(prices) * (1 - discount), 2)
```

Shall I commit it?
"""


def counted(read: int, written: int) -> dict[str, Any]:
    cost = (read * 2.5 + written * 10) / 1_000_000
    return {"input_tokens": read, "output_tokens": written, "cost": cost}


TEST = "python -m unittest 2>&1 | tail -20"
turns = [
    Turn(
        "I'll run the tests first.",
        reasoning="A test fails. I need to see which one, then the function.",
        tool_calls=[
            Call("todo", {"action": "add", "items": ["see what fails", "mend it", "test again"]}),
            Call("shell", {"command": TEST}),
        ],
        usage=counted(2100, 80),
    ),
    Turn(
        "Two tests fail: `total` multiplies by the discount instead of taking it off.",
        tool_calls=[Call("edit_file", {"path": "shop/basket.py", "edits": [{"old": OLD, "new": NEW}]})],
        usage=counted(2900, 90),
    ),
    Turn(
        tool_calls=[
            Call("shell", {"command": TEST}),
            Call("todo", {"action": "done", "numbers": [1, 2, 3]}),
        ],
        usage=counted(3100, 50),
    ),
    Turn(ANSWER, usage=counted(3300, 160)),
]

"""How much work the randomised tests do: `HOOKLINE_TEST_EFFORT` multiplies it."""

import os

EFFORT = int(os.environ.get("HOOKLINE_TEST_EFFORT", "1"))

"""How much work the randomised tests do: little in every run, more where `HOOKLINE_TEST_EFFORT` says so."""

import os

EFFORT = int(os.environ.get("HOOKLINE_TEST_EFFORT", "1"))

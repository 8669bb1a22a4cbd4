"""What importing the kernel brings along."""

import json
import subprocess
import sys

PROBE = """
import json, sys
before = set(sys.modules)
import hookline.hooks
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps([sorted(new - set(sys.stdlib_module_names)), "asyncio" in sys.modules,
                  [n for n in sys.modules if n.startswith("hookline.") and not n.startswith("hookline.hooks")]]))
"""


def test_the_kernel_imports_pluggy_and_the_standard_library_only():
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    foreign, asyncio, other_floors = json.loads(done.stdout)
    assert foreign == ["hookline", "pluggy"]
    assert other_floors == []
    assert not asyncio, "asyncio costs more than the kernel itself and is loaded where it is used"

"""What importing the kernel brings along."""

import json
import subprocess
import sys

PROBE = """
import json, sys
before = set(sys.modules)
import hookline.hooks
new = {name.partition(".")[0] for name in set(sys.modules) - before}
floors = {name.split(".")[1] for name in sys.modules if name.startswith("hookline.")}
foreign = sorted(new - set(sys.stdlib_module_names))
print(json.dumps([foreign, "asyncio" in sys.modules, sorted(floors - {"hooks"})]))
"""


def test_the_kernel_imports_pluggy_and_the_standard_library_only():
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    foreign, asyncio, other_floors = json.loads(done.stdout)
    assert foreign == ["hookline", "pluggy"]
    assert other_floors == []
    assert not asyncio, "asyncio costs more than the kernel itself and is loaded where it is used"

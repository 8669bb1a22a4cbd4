"""Each extension can be deleted from disk: only that extension stops working."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTENSIONS = sorted(
    folder.name for folder in (ROOT / "src/hookline/ext").iterdir() if (folder / "__init__.py").exists()
)
PLUGINS = {"command_hooks": "command-hooks"}
"""The names of plugins that differ from their folders."""
SETTINGS = {
    "command_hooks": '[[hooks.commands.PreToolUse]]\nhooks = [{type = "command", command = "true"}]\n',
    "interceptors": "[agent_hooks]\n",
    "mcp": '[mcp.servers.time]\ncommand = "true"\n',
    "stores": '[stores.notes]\nprovider = "sqlite"\nprotocol = "doc"\n',
    "triggers": '[triggers.nightly]\ntype = "cron"\nschedule = "0 3 * * *"\nmessage = "hi"\n',
    "voice": "[tts]\nenabled = true\n",
}
"""Settings that are for one extension alone, and must not be ignored without it."""

PROGRAM = """
import asyncio, io, json, sys
from pathlib import Path

home, settings = Path(sys.argv[1]), sys.argv[2]
import hookline
from hookline import tool
from hookline.cli import main
from hookline.models import ScriptedModel
from hookline.models.script import Call, Turn
from hookline.policy import Policy
from hookline.runtime.app import Hookline


def command(*arguments):
    sys.argv = ["hookline", *arguments]
    outer = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO()) for _ in range(3))
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        said = []
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            said.append(stream.buffer.getvalue().decode())
        sys.stdin, sys.stdout, sys.stderr = outer
    return [code, *said]


async def turn():
    app = Hookline(home=home, workspace=home, policy=Policy(default="allow"))
    app.load_hooks(packages=False)
    app.tools.add(tool(add, registry=None))
    model = ScriptedModel([Turn(tool_calls=[Call("add", {"one": 1, "other": 2})]), "Three."])
    app.models.add(model)
    app.model = model.name
    async with app.running():
        answer = (await app.process({"content": "one and two?"})).model_output
    return [answer, model.requests[1].messages[-1]["content"], [str(f) for f in app.failures]]


def add(one: int, other: int) -> int:
    '''Add.'''
    return one + other


(home / "script.toml").write_text('[[turns]]\\ntext = "Hello."\\n')
run = ("run", "hi", "--model", f"scripted:{home}/script.toml")
done = {
    "from": str(Path(hookline.__file__).parents[2]),
    "turn": asyncio.run(turn()),
    "help": command("--help"),
    "plugins": command("plugins", "list", "--json"),
    "doctor": command("doctor"),
    "run": command(*run),
}
if settings:
    (home / "config.toml").write_text(settings)
    done["refused"] = command(*run)
print(json.dumps(done))
"""


def without(extension: str, folder: Path) -> Path:
    """Make a checkout of links in which one folder under `ext` is missing."""
    for name in ("hookline", "hookline/ext"):
        real, copy = ROOT / "src" / name, folder / "src" / name
        copy.mkdir(parents=True)
        for each in real.iterdir():
            if each.parent.name == "ext" and each.name == extension:
                continue
            if each.name != "ext":
                (copy / each.name).symlink_to(each)
    (folder / "pyproject.toml").symlink_to(ROOT / "pyproject.toml")
    return folder


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_everything_else_works_without_an_extension(extension, tmp_path):
    checkout = without(extension, tmp_path / "checkout")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    keep = {n: v for n, v in os.environ.items() if not n.startswith("HOOKLINE_")}
    env = {**keep, "PYTHONPATH": f"{checkout}/src", "HOOKLINE_HOME": str(home), "HOME": str(home)}
    line = [sys.executable, "-c", PROGRAM, str(home), SETTINGS.get(extension, "")]
    ended = subprocess.run(
        line, cwd=home, env={**env, "NO_COLOR": "1"}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    done = json.loads(ended.stdout)
    assert done["from"] == str(checkout)
    assert done["turn"] == ["Three.", "3", []]
    assert done["help"][0] == 0
    assert "Answer one message." in done["help"][1]
    code, states, _ = done["plugins"]
    assert code == 0
    missing = [each["name"] for each in json.loads(states) if each["state"] != "loaded"]
    assert missing == [PLUGINS.get(extension, extension)]
    assert "!!" not in done["doctor"][1].replace("!!  model", "")
    assert done["run"][:2] == [0, "Hello.\n"]
    if extension in SETTINGS:
        code, said, why = done["refused"]
        assert (code, said) == (2, "")
        assert f"({missing[0]})" in why
        assert "Traceback" not in why


def test_every_extension_is_an_entry_point_with_a_manifest_that_fits():
    from hookline.plugins.candidate import candidates
    from hookline.plugins.packages import own_entries
    from hookline.specs import PluginManifest

    found, wrong = candidates(own_entries())
    assert wrong == []
    folders = {
        candidate.entry.module.split(".")[2] for candidate in found if ".ext." in candidate.entry.module
    }
    assert folders == {*EXTENSIONS}
    for candidate in found:
        manifest = PluginManifest.model_validate(candidate.said)
        assert manifest.name == candidate.name
        for section, form in manifest.settings.items():
            from hookline.config.validation import form_of

            assert form == "" or form_of(form) is not None, section


def test_a_distribution_that_calls_itself_hookline_is_not_loaded(tmp_path, monkeypatch):
    from hookline.plugins.packages import entries, own_entries

    info = tmp_path / "hookline-9.9.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[hookline]\nevil = evil:Plugin\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "evil" not in {entry.name for entry in (*entries(), *own_entries())}


def test_an_installed_package_reads_the_metadata_beside_it(tmp_path, monkeypatch):
    from hookline.plugins import packages

    declared = packages.own_entries()
    (tmp_path / "hookline").mkdir()
    info = tmp_path / "hookline-0.2.0.dist-info"
    info.mkdir()
    lines = [f"[{e.group}]\n{e.name} = {e.value}\n" for e in declared]
    (info / "entry_points.txt").write_text("".join(lines))
    monkeypatch.setattr(packages, "PACKAGE", str(tmp_path / "hookline"))
    found = packages.own_entries()
    assert [(e.group, e.name, e.value) for e in found] == [(e.group, e.name, e.value) for e in declared]
    assert {(e.version, e.own) for e in found} == {("0.2.0", True)}


def test_files_that_were_never_installed_are_told_to_be(tmp_path, monkeypatch):
    from hookline.errors import PluginError
    from hookline.plugins import packages
    from hookline.runtime.app import Hookline

    monkeypatch.setattr(packages, "PACKAGE", str(tmp_path / "hookline"))
    with pytest.raises(PluginError, match="pip install hookline"):
        Hookline(home=tmp_path).load_hooks(packages=False)

"""The build describes what it ships: an SBOM of Hookline and of everything that it needs."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The part of the checkout that a wheel is built from, with an SBOM."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "src" / "hookline").mkdir(parents=True)
    shutil.copy(ROOT / "src" / "hookline" / "__init__.py", folder / "src" / "hookline")
    sbom(folder / "build" / "sbom" / "hookline.cdx.json")
    return folder


def sbom(target):
    subprocess.run([sys.executable, ROOT / "scripts" / "sbom", target], check=True, cwd=target.anchor)
    return target


def built(folder, target):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", target]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    return zipfile.ZipFile(next(target.glob("*.whl")))


def test_the_wheel_contains_the_sbom(checkout, tmp_path):
    with built(checkout, tmp_path) as wheel:
        (name,) = [name for name in wheel.namelist() if ".dist-info/sboms/" in name]
        told = json.loads(wheel.read(name))
    assert told["bomFormat"] == "CycloneDX"
    assert told["metadata"]["component"]["name"] == "hookline"
    found = {each["name"]: each for each in told["components"]}
    assert {"pluggy", "pydantic", "aiohttp", "typer", "pydantic-core"} <= set(found)
    assert not {"pytest", "ruff", "langchain"} & set(found)
    assert all(each["version"] and each["purl"] and each["hashes"] for each in found.values())
    needs = {each["ref"]: each.get("dependsOn", []) for each in told["dependencies"]}
    ours = needs[told["metadata"]["component"]["bom-ref"]]
    assert any(each.startswith("pluggy==") for each in ours)


def test_a_wheel_is_built_without_an_sbom_too(checkout, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(checkout, bare, ignore=shutil.ignore_patterns("build"))
    with built(bare, tmp_path / "dist") as wheel:
        assert not [name for name in wheel.namelist() if "/sboms/" in name]


def test_the_same_environment_gives_the_same_bytes(checkout, tmp_path):
    again = sbom(tmp_path / "again.json")
    assert again.read_bytes() == (checkout / "build" / "sbom" / "hookline.cdx.json").read_bytes()

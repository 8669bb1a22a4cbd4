"""`hookline doctor` makes the interceptors that the settings name, and says what is wrong with them."""

import pytest

from .. import commandline


@pytest.fixture
def doctor(tmp_path, monkeypatch, capsys):
    here = commandline.here(tmp_path / "home", tmp_path, monkeypatch, capsys)

    def run(config):
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(config)
        return here("doctor", HOME=str(tmp_path))

    return run


def named(*names):
    return (
        f"[agent_hooks]\ninterceptors = {[f'tests.interceptors.policies:{name}' for name in names]}\n"
    )


def test_it_names_those_that_judge(doctor):
    done = doctor(named("allow", "no_echo"))
    names = "tests.interceptors.policies:allow, tests.interceptors.policies:no_echo"
    assert f"ok  intercept {names}\n" in done.stdout
    assert "ok  tape" in done.stdout
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (named("missing"), "cannot be imported"),
        ('[agent_hooks]\ninterceptors = ["no_such_module:x"]\n', "No module named 'no_such_module'"),
        (named("number"), "is no function"),
        (named("broken"), "no key for the policy server"),
        (named("nothing"), "not an interceptor"),
        (named("allow") + 'profil = "parallel/strictest"\n', "did you mean 'profile'"),
    ],
)
def test_what_cannot_be_used_is_broken_and_the_tape_is_not_blamed(doctor, config, told):
    done = doctor(config)
    (line,) = [line for line in done.stdout.splitlines() if "interceptors: loading failed" in line]
    assert line.startswith("!!")
    assert told in line
    assert "ok  tape" in done.stdout
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr


def test_it_tells_where_nobody_judges_and_so_nothing_runs(doctor):
    done = doctor('[agent_hooks]\nmode = "enforce"\n')
    assert "--  intercept no interceptor is named, so everything is denied" in done.stdout


def test_without_the_section_it_says_nothing_of_them(doctor):
    assert "intercept " not in doctor("").stdout

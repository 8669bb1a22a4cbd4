"""Git: what a git command runs besides itself, through its settings, options and subcommands."""

from __future__ import annotations

import re

from ..printable import names
from .effects import Effects
from .options import GLOBAL_OPTIONS
from .words import Word

GIT_COMMANDS = names(
    "add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore "
    "check-mailmap checkout checkout-index cherry cherry-pick clean clone column commit "
    "commit-graph commit-tree config count-objects describe diff diff-files diff-index diff-tree "
    "fast-export fast-import fetch fetch-pack fmt-merge-msg for-each-ref format-patch fsck gc "
    "get-tar-commit-id grep hash-object help index-pack init interpret-trailers log ls-files "
    "ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file "
    "merge-tree mktag mktree multi-pack-index mv name-rev notes pack-objects pack-refs patch-id "
    "prune prune-packed pull push range-diff read-tree rebase reflog remote repack replace "
    "request-pull rerere reset restore rev-list rev-parse revert rm shortlog show "
    "show-branch show-index show-ref sparse-checkout stash status stripspace submodule switch "
    "symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info var "
    "verify-commit verify-pack verify-tag version whatchanged worktree write-tree"
)
"""What git itself does; any other subcommand may be an alias, which runs whatever it says."""
HARMLESS_SETTING = re.compile(
    r"(user\.(name|email|signingkey|useconfigonly)|author\.(name|email)|committer\.(name|email)"
    r"|color\.[\w.-]+|advice\.\w+|init\.defaultbranch|pull\.(rebase|ff|twohead)|push\.(default|autosetupremote)"
    r"|commit\.(gpgsign|verbose|cleanup)|tag\.(gpgsign|sort)|log\.\w+|blame\.\w+|status\.\w+|branch\.(sort|autosetup\w+)"
    r"|fetch\.(prune|prunetags|parallel)|rebase\.(autostash|autosquash|stat)|merge\.(ff|conflictstyle|stat)"
    r"|diff\.(algorithm|renames|context|mnemonicprefix|noprefix|wserrorhighlight)|gc\.auto|gc\.autodetach"
    r"|core\.(quotepath|autocrlf|eol|safecrlf|abbrev|filemode|ignorecase|longpaths|symlinks|precomposeunicode|commentchar)"
    r"|safe\.directory|help\.(autocorrect|format)|http\.(postbuffer|lowspeed\w+|version)|rerere\.enabled"
    r"|column\.\w+|feature\.\w+|index\.\w+|pack\.\w+|protocol\.version|versionsort\.\w+)",
    re.IGNORECASE,
)
"""Settings that name no program, no server and no other file of settings."""
HARMLESS_VALUE = re.compile(r"[^!`$|;&<>\n]*")
RUNS = re.compile(
    r"--(e|ex|exec?)(=.*)?|--exec-path=.*|--exec-.*|--(upl|rece).*|--extc.*|--ext|--ext-.*|--textc.*|--op.*|--tem.*|--te"
    r"|ext::.*|.*\bext::.*|fd::.*|!.*",
    re.DOTALL,
)
"""Arguments with which git runs a program, whatever the subcommand."""
RUNS_IN = {
    "rebase": re.compile(r"-\w*[xi].*|--int.*|--edit.*", re.DOTALL),
    "grep": re.compile(r"-[a-zA-Z]*O.*", re.DOTALL),
    "clone": re.compile(r"-\w*[cu].*|--conf.*", re.DOTALL),
    "ls-remote": re.compile(r"-u.*"),
    "submodule": re.compile(r"foreach"),
    "bisect": re.compile(r"run|visualize|view"),
    "maintenance": re.compile(r"start|register"),
    "notes": re.compile(r"edit"),
    "branch": re.compile(r"--edit.*"),
    "help": re.compile(r"-w|--web|-\w*w\w*"),
    "interpret-trailers": re.compile(r"-.*"),
    "merge": re.compile(r"--strategy(?!-option).*"),
    "worktree": re.compile(r"--conf.*"),
}
"""The same for some subcommands."""
STRATEGIES = names("ours recursive resolve octopus subtree ort theirs")
MERGES = names("merge pull rebase cherry-pick revert")
READING = re.compile(r"-l|--list|--get.*|get|get-all|get-regexp|list|--name-only|--show-.*")


def git_effects(program: str, rest: list[Word], found: Effects) -> None:
    """Settings, options and aliases with which git runs something else."""
    takes, flags = GLOBAL_OPTIONS["git"]
    at = 0
    while at < len(rest):
        text = rest[at].text
        if rest[at].dynamic:
            return
        if text[:2] == "-c" or text.startswith("--config-env"):
            setting = rest[at + 1] if text == "-c" and at + 1 < len(rest) else Word(text[2:])
            name, _, value = setting.text.partition("=")
            if setting.dynamic or text[:2] != "-c" or not is_harmless(name, value):
                found.unclear.append(f"git runs with the setting {name[:40]!r}")
        if text in takes:
            at += 2
        elif text in flags or text.partition("=")[0] in takes or text[:2] in ("-c", "-C"):
            at += 1
        elif text.startswith("-"):
            found.unknown_option(program, text)
            return
        else:
            break
    if at < len(rest):
        subcommand_effects(rest[at].text, rest[at + 1 :], found)


def subcommand_effects(name: str, rest: list[Word], found: Effects) -> None:
    """What a subcommand runs."""
    if name not in GIT_COMMANDS:
        found.unclear.append(f"git {name[:40]} may be an alias that runs something else")
        return
    own = RUNS_IN.get(name)
    for word in rest:
        if RUNS.fullmatch(word.text) or (own is not None and own.fullmatch(word.text)):
            found.unclear.append(f"git {name} may run something else with {word.text[:40]!r}")
            return
    if name == "config":
        config_effects(rest, found)
    elif name in MERGES:
        strategies = [
            following.text if word.text == "-s" else word.text[2:]
            for word, following in zip(rest, [*rest[1:], Word("")], strict=False)
            if re.fullmatch(r"-s\w*", word.text)
        ]
        if not STRATEGIES.issuperset(strategies):
            found.unclear.append("git runs a merge strategy of that name")


def config_effects(rest: list[Word], found: Effects) -> None:
    """Settings may name a program that git runs later."""
    texts = [word.text for word in rest]
    if any(re.fullmatch(r"-[ef].*|--(e|f|bl).*|edit", text) for text in texts):
        found.unclear.append("git config may set what git runs later")
    if any(READING.fullmatch(text) for text in texts):
        return
    operands = [text for text in texts if not text.startswith("-")]
    if operands[:1] in (["set"], ["unset"]):
        del operands[0]
    value = " ".join(operands[1:])
    if any(word.dynamic for word in rest) or (
        len(operands) > 1 and not is_harmless(operands[0], value)
    ):
        found.unclear.append("git config may set what git runs later")
    if any(re.fullmatch(r"--(ren|rem).*|rename-section|remove-section", text) for text in texts):
        found.unclear.append("git config may set what git runs later")


def is_harmless(name: str, value: str) -> bool:
    """Whether a setting changes nothing but how git looks and whom it names."""
    return bool(HARMLESS_SETTING.fullmatch(name) and HARMLESS_VALUE.fullmatch(value))

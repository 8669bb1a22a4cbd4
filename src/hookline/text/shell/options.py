"""Shell options: what options of common programs are called, and which take an argument.

Data for the reader of command lines and for patterns over commands.
"""

# ruff: noqa: E501 - tables are easier to read in long lines

from __future__ import annotations

from ..printable import names

GLOBAL_OPTIONS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "git": (
        names("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source --list-cmds"),
        names("-p --paginate -P --no-pager --bare --no-replace-objects --literal-pathspecs --glob-pathspecs "
              "--noglob-pathspecs --icase-pathspecs --no-optional-locks --no-lazy-fetch "
              "--no-advice --exec-path "
              "--html-path --man-path --info-path --version --help"),
    ),
    "docker": (
        names("--config -c --context -H --host -l --log-level --tlscacert --tlscert --tlskey"),
        names("-D --debug --tls --tlsverify -v --version"),
    ),
    "kubectl": (
        names("-n --namespace --context --cluster --user --kubeconfig -s --server --token --as --as-group "
              "--cache-dir --request-timeout -v --v --tls-server-name --certificate-authority"),
        names("--insecure-skip-tls-verify --match-server-version --warnings-as-errors"),
    ),
    "npm": (
        names("--prefix -C --registry --userconfig --globalconfig --cache -w --workspace --loglevel --tag --otp"),
        names("-g --global -s --silent -d -dd -q --quiet --workspaces -ws --force --dry-run --no-audit --no-fund"),
    ),
    "terraform": (names(""), names("-version -help")),
    "pip": (
        names("--log --proxy --retries --timeout --exists-action --trusted-host --cert --client-cert --cache-dir "
              "--python --keyring-provider"),
        names("--isolated --require-virtualenv -v --verbose -q --quiet --no-input --no-cache-dir --debug "
              "--disable-pip-version-check --no-color"),
    ),
    "systemctl": (
        names("-t --type --state -p --property -H --host -M --machine -n --lines -o --output --root --signal -s"),
        names("--user --system --global --no-block --no-pager --quiet -q --now -f --force -a --all --no-ask-password"),
    ),
    "aws": (
        names("--profile --region --output --endpoint-url --query --color --ca-bundle --cli-read-timeout "
              "--cli-connect-timeout"),
        names("--debug --no-verify-ssl --no-paginate --no-sign-request --no-cli-pager"),
    ),
}  # fmt: skip
"""Options before a subcommand: those with an argument, and those without one."""
GLOBAL_OPTIONS["cargo"] = (names("--config -C --color"), names("-v -q --locked --offline --frozen"))
GLOBAL_OPTIONS["podman"] = GLOBAL_OPTIONS["docker"]
GLOBAL_OPTIONS["pip3"] = GLOBAL_OPTIONS["pip"]

LONG_OPTIONS = {
    "rm": names("--recursive --force --no-preserve-root --dir"),
    "chmod": names("--recursive"),
    "chown": names("--recursive"),
    "chgrp": names("--recursive"),
    "cp": names("--recursive --archive --force"),
    "git": names("--force --force-with-lease --force-if-includes --delete --mirror --hard --prune --all --discard-changes --amend"),
    "rsync": names("--delete --delete-before --delete-during --delete-delay --delete-after --delete-excluded "
                   "--remove-source-files --recursive --archive"),
    "grep": names("--recursive --dereference-recursive"),
    "shred": names("--remove"),
    "truncate": names("--size"),
    "ls": names("--recursive"),
    "zip": names("--recurse-paths --move"),
    "tar": names("--remove-files --create --delete"),
    "rg": names("--hidden --no-ignore --unrestricted"),
}  # fmt: skip
"""Long options that rules ask for; a shell user may write any unambiguous beginning of one."""
SAME_OPTIONS = {
    "rm": {"-r": "--recursive", "-R": "--recursive", "-f": "--force", "-d": "--dir"},
    "chmod": {"-R": "--recursive"},
    "chown": {"-R": "--recursive"},
    "chgrp": {"-R": "--recursive"},
    "cp": {"-r": "--recursive", "-R": "--recursive", "-a": "--archive", "-f": "--force"},
    "git": {"-f": "--force", "-d": "--delete"},
    "rsync": {"-r": "--recursive", "-a": "--archive"},
    "grep": {"-r": "--recursive", "-R": "--dereference-recursive"},
    "shred": {"-u": "--remove"},
    "ls": {"-R": "--recursive"},
    "zip": {"-r": "--recurse-paths", "-m": "--move"},
    "tar": {"-c": "--create"},
}
"""Short options and their long names."""
FOLDER_READERS: dict[str, frozenset[str] | None] = {
    "grep": names("-r -R --recursive --dereference-recursive"),
    "egrep": names("-r -R --recursive --dereference-recursive"),
    "fgrep": names("-r -R --recursive --dereference-recursive"),
    "rg": names("-u -uu -uuu --hidden --no-ignore --unrestricted -."),
    "ag": names("-u --hidden --unrestricted"),
    "cp": names("-r -R -a --recursive --archive"),
    "scp": names("-r"),
    "rsync": names("-r -a --recursive --archive"),
    "tar": None,
    "zip": names("-r --recurse-paths"),
    "7z": None,
    "mv": None,
    "diff": names("-r --recursive"),
    "chmod": names("-R --recursive"),
    "chown": names("-R --recursive"),
    "find": names("-exec -execdir -ok -okdir -delete -fprint -fprintf"),
}
"""Programs that read or change what is below a folder: with one of these options, or always."""

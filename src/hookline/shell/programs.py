"""Shell programs: what is known of the programs that command lines run.

Data for the reader of command lines: which programs run another one and where in their arguments it
stands, which take a program as text, and which options come before a subcommand.
"""

# ruff: noqa: E501 - tables are easier to read in long lines

from __future__ import annotations

import re
from dataclasses import dataclass

from hookline.text import names


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program that runs the command in its arguments.

    `short` are the letters and `long` the names of options that take an argument of their own, `flags` those
    that take none. `operands` come before the command. An option that is not listed makes the line unclear.
    """

    short: str = ""
    long: frozenset[str] = frozenset()
    letters: str = ""
    flags: frozenset[str] = frozenset()
    operands: int = 0
    assignments: bool = False
    """Whether `NAME=value` may stand before the command."""
    subcommand: str = ""
    """The first operand with which it is a wrapper, as in `uv run`."""


def wrapper(
    short: str = "", long: str = "", letters: str = "", flags: str = "", **more: object
) -> Wrapper:
    """A wrapper, its options as words."""
    return Wrapper(short, names(long), letters, names(flags), **more)  # type: ignore[arg-type]


WRAPPERS: dict[str, tuple[Wrapper, ...]] = {
    "sudo": (wrapper(
        "CDghpRrtTUu", "close-from chdir group host prompt chroot role type command-timeout other-user user",
        "AbBEHKknNPSV", "askpass background bell preserve-env set-home reset-timestamp non-interactive stdin",
        assignments=True,
    ),),
    "doas": (wrapper("Cu", "", "Lns"),),
    "pkexec": (wrapper("u", "user", "", "disable-internal-agent keep-cwd"),),
    "env": (wrapper(
        "uC", "unset chdir", "i0v",
        "ignore-environment null debug block-signal default-signal ignore-signal list-signal-handling",
        assignments=True,
    ),),
    "nohup": (wrapper(),),
    "setsid": (wrapper("", "", "cfw", "ctty fork wait"),),
    "nice": (wrapper("n", "adjustment", "0123456789"),),
    "ionice": (wrapper("cn", "class classdata", "t", "ignore"),),
    "timeout": (wrapper("ks", "kill-after signal", "v", "foreground preserve-status verbose", operands=1),),
    "gtimeout": (wrapper("ks", "kill-after signal", "v", "foreground preserve-status verbose", operands=1),),
    "stdbuf": (wrapper("ioe", "input output error"),),
    "time": (wrapper("fo", "format output", "apqvV", "append portability quiet verbose"),),
    "command": (wrapper("", "", "pvV"),),
    "builtin": (wrapper(),),
    "exec": (wrapper("a", "", "cl"),),
    "busybox": (wrapper(),),
    "toybox": (wrapper(),),
    "strace": (wrapper("abeEIoOpPsSuX", "trace output attach user string-limit", "cCdfFhiknqrtTvVwxyYzZ",
                       "follow-forks summary-only"),),
    "ltrace": (wrapper("aAeDFlnopsuwX", "output library", "bcCfhiLrStTV"),),
    "taskset": (wrapper("", "", "ac", "all-tasks cpu-list", operands=1),),
    "chrt": (wrapper("TPD", "sched-runtime sched-period sched-deadline", "bdfiorRaGm",
                     "batch deadline fifo idle other rr reset-on-fork", operands=1),),
    "unshare": (wrapper("SGRw", "setuid setgid root wd map-user map-group propagation kill-child",
                        "mipnuUCTfrc", "mount ipc net pid uts user cgroup fork map-root-user mount-proc"),),
    "systemd-run": (wrapper(
        "pEHMuS", "unit property description slice uid gid nice working-directory setenv host machine service-type "
        "on-active on-boot on-calendar timer-property",
        "dGPqrtT", "user system scope remain-after-exit collect wait pty pipe quiet same-dir no-block no-ask-password",
    ),),
    "prlimit": (wrapper("po", "pid output"),),
    "numactl": (wrapper("NCmip", "cpunodebind physcpubind membind interleave preferred", "al", "all localalloc"),),
    "setarch": (wrapper("", "", "BFILRSTXZ3v", operands=1),),
    "faketime": (wrapper("", "", "fm", operands=1),),
    "fakeroot": (wrapper("lsibf", "lib faked"),),
    "torsocks": (wrapper("uPa", "user port address", "dqi"),),
    "proxychains": (wrapper("f", "", "q"),),
    "proxychains4": (wrapper("f", "", "q"),),
    "xvfb-run": (wrapper("efnpsw", "error-file auth-file server-num xauth-protocol server-args wait", "al",
                         "auto-servernum listen-tcp"),),
    "dbus-run-session": (wrapper(),),
    "caffeinate": (wrapper("tw", "", "dimsu"),),
    "unbuffer": (wrapper("", "", "p"),),
    "rlwrap": (wrapper("bcCfHlmMOpPqrsStwz", "", "aAeEiIjNnoRUvx"),),
    "eatmydata": (wrapper(),),
    "gosu": (wrapper(operands=1),),
    "su-exec": (wrapper(operands=1),),
    "tini": (wrapper("pe", "", "sgvw"),),
    "dumb-init": (wrapper("r", "rewrite", "cv", "single-child"),),
    "entr": (wrapper("", "", "acdnprsxz"),),
    "valgrind": (wrapper("", "tool", "qv"),),
    "coproc": (wrapper(),),
    "xargs": (wrapper(
        "adEeIiLlnPs", "arg-file delimiter eof replace max-lines max-args max-procs max-chars process-slot-var",
        "0oprtx", "null open-tty interactive no-run-if-empty verbose exit show-limits",
    ),),
    "uv": (wrapper("p", "with python project directory extra group env-file package index default-index", "qv",
                   "no-sync frozen locked isolated no-project offline active dev no-dev all-extras quiet verbose",
                   subcommand="run"),),
    "uvx": (wrapper("p", "with python from index", "qv", "isolated offline"),),
    "poetry": (wrapper("CP", "directory project", "nqv", "no-interaction", subcommand="run"),),
    "pipenv": (wrapper("", "", "qv", subcommand="run"),),
    "pdm": (wrapper("p", "project", "sv", subcommand="run"),),
    "rye": (wrapper("", "", "v", subcommand="run"),),
    "pipx": (wrapper("", "spec python", "", "no-cache", subcommand="run"),),
    "bundle": (wrapper("", "gemfile", "", subcommand="exec"),),
    "npx": (wrapper("p", "package", "yq", "yes no no-install quiet"),),
    "pnpx": (wrapper("p", "package", "y"),),
    "bunx": (wrapper("p", "package", "", "bun"),),
    "pnpm": (wrapper("C", "dir filter", "r", "recursive", subcommand="exec"),
             wrapper("C", "dir filter", "", subcommand="dlx")),
    "yarn": (wrapper("", "cwd", "", subcommand="exec"), wrapper("p", "package", "q", subcommand="dlx")),
    "coverage": (wrapper("m", "source include omit rcfile data-file", "ap", "append branch parallel-mode",
                         subcommand="run"),),
    "direnv": (wrapper(operands=1, subcommand="exec"),),
    "perf": (wrapper("ecgop", "event output", "ag", "all-cpus", subcommand="record"),
             wrapper("eorp", "event output repeat", "ad", "all-cpus detailed", subcommand="stat")),
}  # fmt: skip
"""Programs that run the command in their arguments."""

SEDS = names("sed gsed")
AWKS = names("awk gawk mawk nawk")
SHELLS = names("sh bash dash zsh ksh ash mksh rbash yash posh")
OTHER_SHELLS = names("fish csh tcsh nu xonsh elvish pwsh powershell cmd")
"""Shells with another syntax: what they are given is not read."""
INTERPRETERS = names(
    "python pypy perl ruby node nodejs deno bun php lua luajit tclsh wish osascript jshell "
    "rscript r julia ghci runghc irb jrunscript groovy scala kotlin elixir erl swift guile racket "
    "sbcl clisp octave gnuplot ipython bpython ts-node tsx awk gawk mawk nawk sed gsed"
)
"""Programs whose arguments may be a program in another language."""
PLAIN_OPTIONS = {
    "python": names("-u -O -OO -B -s -S -E -I -q -P"),
    "pypy": names("-u -O -OO -B -s -S -E -I -q"),
    "perl": names("-w -T"),
    "ruby": names("-w"),
    "deno": names("run test"),
    "bun": names("run test x"),
}
"""Options, or subcommands, of interpreters before the file they run."""
HARMLESS = names("--version -V --help -h -v -vV version help")

UNREADABLE = names(
    "source . alias shopt enable bind let fc coproc parallel ssh mosh rsh slogin sshpass su "
    "runuser sg newgrp chroot nsenter capsh firejail bwrap proot expect screen tmux vi vim nvim "
    "view vimdiff rvim gvim ex ed emacs emacsclient nano pico joe mc gdb lldb m4 hyperfine "
    "nodemon watchexec at batch crontab ansible ansible-playbook vagrant virsh lxc lxc-attach "
    "distrobox toolbox adb socat ncat wsl machinectl pkexec script dialog xterm gnome-terminal "
    "konsole logrotate run-parts run-one start-stop-daemon daemonize supervisorctl monit nsjail "
    "runcon setpriv zipgrep complete compgen compopt pry gdbserver rr doitlive asciinema "
    "nix-shell nix"
)
"""Programs and builtins that run text, or a command elsewhere: what they do is not known from the words."""

TEXT_OPTIONS = {
    "su": ("-c", "--command", "--session-command"),
    "runuser": ("-c", "--command", "--session-command"),
    "script": ("-c", "--command"),
    "flock": ("-c", "--command"),
}
"""Options whose argument is a command line; it is read as well."""

UNREADABLE_ARGUMENTS = {
    "git": re.compile(
        r"-c|-c.*|--config-env.*|--exec-path=.*|--upload-pack.*|--receive-pack.*|--exec.*|--extcmd.*|-x.*|"
        r"--open-files-in-pager.*|-O.*|ext::.*|!.*|--ext-diff|--textconv|--upl.*|--rec[ei].*|filter-branch|foreach|"
        r"alias\..*|core\..*|credential\..*|diff\..*|merge\..*|filter\..*|gpg\..*|include\S*|sequence\..*|uploadpack\..*|"
        r"difftool|mergetool|daemon|shell|send-email|instaweb|gui|gitk|citool|p4|svn|cvs\w*|remote-.*"
    ),
    "tar": re.compile(r"--(checkpoint-a|to-c|use|rsh|info|new|rmt).*|-\w*[IF].*|[a-zA-Z]*[IF][a-zA-Z]*"),
    "bsdtar": re.compile(r"--use.*"),
    "rsync": re.compile(r"-\w*e.*|--rsh.*|--rsync-path.*"),
    "scp": re.compile(r"-\w*[oS].*"),
    "sftp": re.compile(r"-\w*[oSDb].*"),
    "make": re.compile(r"SHELL.*|\.SHELLFLAGS.*|--eval.*|-\w*f.*|--file.*|--makefile.*|-$|MAKEFLAGS.*|MAKEFILES.*"),
    "gmake": re.compile(r"SHELL.*|\.SHELLFLAGS.*|--eval.*|-\w*f.*|--file.*|--makefile.*|-$"),
    "man": re.compile(r"-\w*[PH].*|--(pager|html|browser|preprocessor).*|-\w*p.*"),
    "less": re.compile(r"\+.*|-.*[kKoO].*|--(lesskey|log).*"),
    "more": re.compile(r"\+.*"),
    "zip": re.compile(r"-\w*T.*|-TT.*|--unzip-command.*|--test.*"),
    "docker": re.compile(r"run|exec|compose|create|start|buildx|build"),
    "podman": re.compile(r"run|exec|compose|create|start|build|play"),
    "nerdctl": re.compile(r"run|exec|compose"),
    "kubectl": re.compile(r"exec|run|debug|edit|attach|cp|plugin"),
    "oc": re.compile(r"exec|run|debug|edit|rsh"),
    "npm": re.compile(r"exec|x|explore|--script-shell.*|--(node-)?options.*"),
    "cargo": re.compile(r"--config.*|watch"),
    "go": re.compile(r"-exec.*|-toolexec.*|generate"),
    "jq": re.compile(r"-\w*L.*|--library.*"),
    "sort": re.compile(r"--compress-prog.*"),
    "split": re.compile(r"--filter.*"),
    "mapfile": re.compile(r"-C.*"),
    "readarray": re.compile(r"-C.*"),
    "hash": re.compile(r"-\w*p.*"),
    "jobs": re.compile(r"-x"),
    "set": re.compile(r"[-+]\w*k\w*|keyword|posix|history"),
    "trap": re.compile(r"DEBUG|RETURN|ERR"),
    "rg": re.compile(r"--pre.*|--hostname-bin.*"),
    "openssl": re.compile(r"-?engine.*|-provider.*|s_client|s_server"),
    "curl": re.compile(r"-\w*K.*|--config.*"),
    "wget": re.compile(r"--use-askpass.*|-e.*|--execute.*|--config.*"),
    "tcpdump": re.compile(r"-\w*z.*"),
    "ip": re.compile(r"exec|-b.*"),
    "systemctl": re.compile(r"edit|set-environment|import-environment"),
    "sqlite3": re.compile(r"\..*|.*\.(shell|system|load|import|output|once|excel|open).*|-cmd|-init|.*load_extension.*|.*writefile.*|.*readfile.*|.*edit\(.*"),
    "psql": re.compile(r".*\\.*|-\w*[fv].*|.*program.*|--file.*|--set.*"),
    "mysql": re.compile(r".*\\.*|.*system.*|--(init|pager).*|.*source.*"),
    "gcc": re.compile(r"-wrapper|-fplugin.*|-B.*|-specs.*|@.*"),
    "cmake": re.compile(r"-P|-E"),
    "pip": re.compile(r"--config-settings.*|--python.*"),
    "dpkg": re.compile(r"--(pre|post)-invoke.*|--status-logger.*"),
    "apt": re.compile(r"-o.*|--option.*|-c.*|--config-file.*|edit-sources"),
    "apt-get": re.compile(r"-o.*|--option.*|-c.*|--config-file.*"),
    "fd": re.compile(r"-\w*[xX].*|--exec.*"),
    "fdfind": re.compile(r"-\w*[xX].*|--exec.*"),
    "printf": re.compile(r"-v.*"),
    "read": re.compile(r".*\[.*"),
    "declare": re.compile(r"-\w*[nif].*|.*\[.*[$`].*"),
    "typeset": re.compile(r"-\w*[nif].*|.*\[.*[$`].*"),
    "local": re.compile(r"-\w*[ni].*|.*\[.*[$`].*"),
    "export": re.compile(r"-\w*[f].*|.*\[.*[$`].*"),
    "readonly": re.compile(r".*\[.*[$`].*"),
    "unset": re.compile(r".*\[.*"),
    "test": re.compile(r".*\[.*[$`].*"),
    "[": re.compile(r".*\[.*[$`].*"),
    "[[": re.compile(r".*\[.*[$`].*"),
    "wait": re.compile(r"-p.*"),
    "getopts": re.compile(r".*\[.*"),
    "busybox": re.compile(r"--install.*"),
    "gh": re.compile(r"alias|extension|codespace|config"),
    "terraform": re.compile(r"console"),
    "aws": re.compile(r"configure|ssm"),
    "gcloud": re.compile(r"ssh|scp|alpha"),
    "helm": re.compile(r"plugin|--post-renderer.*"),
    "bash": re.compile(r"--(rcfile|init-file).*|-O|\+O"),
    "nc": re.compile(r"-\w*[ec].*|--(sh-)?exec.*"),
    "netcat": re.compile(r"-\w*[ec].*|--(sh-)?exec.*"),
    "xdg-open": re.compile(r".*"),
    "open": re.compile(r".*"),
    "troff": re.compile(r"-U.*"),
}  # fmt: skip
"""Arguments with which a program that is not made for it runs something else."""

EDITORS_OF_GIT = re.compile(
    r"!|^(alias|core|credential|diff|difftool|merge|mergetool|filter|gpg|include|includeif|sequence|"
    r"uploadpack|pager|interactive|browser|man|web|instaweb|receive|remote|ssh|url|protocol|"
    r"submodule|init|trailer)\\.|^--(edit|file)|^-[ef]",
    re.IGNORECASE,
)
"""Settings of git that name a program, and options that read others."""
GIT_COMMANDS = names(
    "add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore "
    "check-mailmap checkout checkout-index cherry cherry-pick clean clone column commit "
    "commit-graph commit-tree config count-objects describe diff diff-files diff-index diff-tree "
    "fast-export fast-import fetch fetch-pack fmt-merge-msg for-each-ref format-patch fsck gc "
    "get-tar-commit-id grep hash-object help index-pack init interpret-trailers log ls-files "
    "ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file merge-index "
    "merge-tree mktag mktree multi-pack-index mv name-rev notes pack-objects pack-refs patch-id "
    "prune prune-packed pull push range-diff read-tree rebase reflog remote repack replace "
    "request-pull rerere reset restore rev-list rev-parse revert rm shortlog show show-branch "
    "show-index show-ref sparse-checkout stash status stripspace submodule switch symbolic-ref "
    "tag unpack-file unpack-objects update-index update-ref update-server-info var verify-commit "
    "verify-pack verify-tag version whatchanged worktree write-tree"
)
"""What git itself does; any other subcommand may be an alias, which runs whatever it says."""

ORDINARY = names(
    "echo printf cat ls cp mv rm mkdir rmdir touch ln chmod chown chgrp head tail wc sort uniq "
    "cut tr tee grep egrep fgrep rg ag diff cmp comm join paste nl fold fmt expand rev tac seq "
    "basename dirname realpath readlink stat file du df free uptime uname hostname date cal "
    "whoami id groups who w pwd cd pushd popd dirs true false test [ [[ : sleep kill pkill "
    "killall ps top pgrep which whereis type hash help history export unset set read declare "
    "local typeset readonly return exit break continue shift wait jobs fg bg disown umask ulimit "
    "trap getopts mapfile readarray printenv locale tput clear reset md5sum sha1sum sha256sum "
    "sha512sum cksum base64 xxd od hexdump strings gzip gunzip zcat bzip2 bunzip2 xz unxz zstd "
    "tar zip unzip 7z cpio ar curl wget nc dig host nslookup ping ip ifconfig ss netstat lsof "
    "mount umount dd shred truncate split csplit sync mktemp tree column jq yq xmllint git hg svn "
    "make cmake ninja gcc g++ cc clang ld ar nm objdump strip cargo rustc go gofmt javac mvn "
    "gradle npm pnpm yarn pip pip3 pytest ruff mypy pyright black isort flake8 tox nox eslint "
    "prettier tsc jest vitest docker podman kubectl helm terraform aws gcloud az gh apt apt-get "
    "dpkg yum dnf brew systemctl journalctl service psql mysql sqlite3 redis-cli rsync scp sftp "
    "ssh-keygen gpg openssl install find man less more apropos info mkfs fdisk shutdown reboot "
    "hookline conda mamba gem bundle composer poetry uv pdm pre-commit sphinx-build mkdocs dotnet "
    "php"
)
"""Programs that do not run the words after them."""

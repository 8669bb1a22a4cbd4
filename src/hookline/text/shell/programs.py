"""Shell programs: what is known of the programs that command lines run.

Data for the reader of command lines: which programs run another one and where in their arguments it
stands, which take a program as text, and which options come before a subcommand.
"""

# ruff: noqa: E501 - tables are easier to read in long lines

from __future__ import annotations

import re
from dataclasses import dataclass

from ..printable import names


@dataclass(frozen=True, slots=True)
class WrapperProgram:
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
) -> WrapperProgram:
    """A wrapper, its options as words."""
    return WrapperProgram(short, names(long), letters, names(flags), **more)  # type: ignore[arg-type]


WRAPPERS: dict[str, tuple[WrapperProgram, ...]] = {
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
    "nix-shell nix autossh micro helix hx kak red rview mg jed ne mcedit code subl mongosh mongo "
    "duckdb sqlplus cqlsh clickhouse clickhouse-client bpftrace scriptreplay sem rush entr gitk "
    "litecli pgcli mycli usql gvimdiff vimtutor tig lazygit ranger nnn lf"
)
"""Programs and builtins that run text, or a command elsewhere: what they do is not known from the words."""

TEXT_OPTIONS = {
    "su": ("-c", "--command", "--session-command"),
    "runuser": ("-c", "--command", "--session-command"),
    "script": ("-c", "--command"),
    "flock": ("-c", "--command"),
}
"""Options whose argument is a command line; it is read as well."""

SETTERS = names("read mapfile readarray getopts export declare typeset local readonly unset")
"""Builtins that set the variables in their arguments."""

QUERIES = names("sqlite3 psql mysql redis-cli")
"""Clients of databases, which ignore case and read what they are not given from their input."""

UNREADABLE_ARGUMENTS = {
    program: re.compile(pattern, re.DOTALL | re.IGNORECASE if program in QUERIES else re.DOTALL)
    for program, pattern in {
    "tar": r"--(checkpoint-a|to-c|use|rs|inf|new|rm|fi|T).*|-\w*[IFT].*|[a-zA-Z]*[IFT][a-zA-Z]*|[^/]+:.*",
    "bsdtar": r"--use.*",
    "rsync": r"-\w*[eM].*|--(rs|rem|da|conf|fi|ou).*",
    "scp": r"-\w*[oSFDJ].*",
    "sftp": r"-\w*[oSDbFJ].*",
    "make": r"--ev.*|-\w*E.*|-",
    "gmake": r"--ev.*|-\w*E.*|-",
    "man": r"-\w*[PHpCM].*|--(pag|ht|br|pre|con|man).*",
    "less": r"\+.*|-.*[kKoO].*|--(les|log|LOG).*",
    "more": r"\+.*",
    "zip": r"-\w*T.*|-@|--(unz|te).*",
    "docker": r"run|exec|compose|create|start|buildx|attach|plugin|stack|service|swarm|--secret.*|--ssh.*|-o.*|--output.*|-|--config.*|-H.*|--host.*|--build-context.*|--all.*",
    "podman": r"run|exec|compose|create|start|play|kube|attach|--secret.*|--ssh.*|-o.*|--output.*|-|unshare|machine|--hooks-dir.*|-v.*|--volume.*",
    "nerdctl": r"run|exec|compose",
    "kubectl": r"exec|run|debug|edit|attach|cp|plugin|proxy|--kubeconfig.*|--exec.*",
    "oc": r"exec|run|debug|edit|rsh",
    "npm": r"exec|x|explore|init|create|innit|edit|set|c|config|--call.*|--script-shell.*|--(node-)?options.*|--(user|global)config.*|--editor.*",
    "cargo": r"--config.*|watch|-Z.*|--runner.*",
    "go": r"--?(exec|toolexec|vettool|modfile|overlay).*|.*-extld.*|generate|-w|tool",
    "jq": r"-\w*L.*|--library.*",
    "sort": r"--(compress-p|files0|co|fi).*",
    "split": r"--fi.*",
    "mapfile": r"-\w*C.*",
    "readarray": r"-\w*C.*",
    "hash": r"-\w*p.*",
    "jobs": r"-x",
    "set": r"[-+]\w*k\w*|keyword|posix|history",
    "trap": r"(?i:(SIG)?(DEBUG|RETURN|ERR))",
    "rg": r"--pre.*|--hostname-bin.*|-f.*",
    "openssl": r"--?engine.*|engine|--?provider.*|--?config|s_client|s_server|s_time",
    "curl": r"-\w*K.*|--(conf|engine|variable|expand|libcurl|krb).*",
    "wget": r"--(use|exe|conf|in).*|-e.*|-[a-zA-Z]*i",
    "tcpdump": r"-\w*z.*",
    "ip": r"exec|-b.*",
    "systemctl": r"edit|set-environment|import-environment|link|enable|--root.*|-H.*|--host.*",
    "sqlite3": r"\s*\..*|.*\.(sh|sys?|lo|im|ou|on|ex|op|re|ba|cl|du|sa).*|--?(cmd|init).*|.*(load_extension|writefile|readfile|edit|fts3_tokenizer)\s*\(.*",
    "psql": r".*\\.*|-\w*[fvoL].*|.*program.*|--(f|se|va|o|log).*|\|.*",
    "mysql": r".*\\.*|.*system.*|--(init|pa|tee|def|plu|log).*|.*source.*|.*(outfile|load_file|dumpfile).*",
    "gcc": r"-wrapper.*|-f(plugin|use-ld|lto).*|-B.*|--?specs.*|@.*|-Xlinker|-Wl,.*plugin.*",
    "cmake": r"-P|-E",
    "pip": r"--config-settings.*|--python.*",
    "dpkg": r"--(pre|post)-invoke.*|--status-logger.*",
    "apt": r"-o.*|--option.*|-c.*|--config-file.*|edit-sources",
    "apt-get": r"-o.*|--option.*|-c.*|--config-file.*",
    "fd": r"-\w*[xX].*|--exec.*",
    "fdfind": r"-\w*[xX].*|--exec.*",
    "printf": r"-v.*",
    "read": r".*\[.*",
    "declare": r"-\w*[nif].*|[^\[]*\[[^$`]*[$`].*",
    "typeset": r"-\w*[nif].*|[^\[]*\[[^$`]*[$`].*",
    "local": r"-\w*[ni].*|[^\[]*\[[^$`]*[$`].*",
    "export": r"-\w*[f].*|[^\[]*\[[^$`]*[$`].*",
    "readonly": r"[^\[]*\[[^$`]*[$`].*",
    "unset": r".*\[.*",
    "test": r"[^\[]*\[[^$`]*[$`].*",
    "[": r"[^\[]*\[[^$`]*[$`].*",
    "[[": r"[^\[]*\[[^$`]*[$`].*",
    "wait": r"-p.*",
    "getopts": r".*\[.*",
    "busybox": r"--install.*",
    "gh": r"alias|extension|codespace|config",
    "terraform": r"console",
    "aws": r"configure|ssm",
    "gcloud": r"ssh|scp|alpha",
    "helm": r"plugin|--post-renderer.*",
    "bash": r"--(rcfile|init-file).*|-O|\+O",
    "nc": r"-\w*[ec].*|--(sh-)?exec.*",
    "netcat": r"-\w*[ec].*|--(sh-)?exec.*",
    "redis-cli": r"-x|-X|--eval.*|eval\w*|config|module|script|function|fcall\w*|debug|slaveof|replicaof|migrate",
    "strace": r"[|!].*|-\w*o\s*[|!].*|--o.*=[|!].*",
    "perf": r"script|trace|report|annotate|archive",
    "ssh-keygen": r"-\w*[Dw].*",
    "ssh-add": r"-\w*[sS].*",
    "cpio": r"--rsh.*|-\w*[opF].*|--(cr|pa|file).*|[^/]+:.*",
    "wc": r"--files0.*",
    "du": r"--files0.*",
    "poetry": r"shell|self|config|source",
    "pipenv": r"shell",
    "hatch": r"shell|config",
    "conda": r"shell|config|activate",
    "composer": r"run.*|exec|config|global",
    "ninja": r"-\w*t.*",
    "xdg-open": r".*",
    "open": r".*",
    "troff": r"-U.*",
}.items()
}  # fmt: skip
"""Arguments with which a program that is not made for it runs something else."""

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
    "make cmake ninja gcc g++ cc clang ld ar nm objdump strip rustc go gofmt javac mvn "
    "gradle pip pip3 pytest ruff mypy pyright black isort flake8 eslint "
    "prettier tsc jest vitest docker podman kubectl helm terraform aws gcloud az gh apt apt-get "
    "dpkg yum dnf brew systemctl journalctl service psql mysql sqlite3 redis-cli rsync scp sftp "
    "ssh-keygen gpg openssl install find man less more apropos info mkfs fdisk shutdown reboot "
    "hookline gem sphinx-build mkdocs dotnet "
    "php"
)
"""Programs that do not run the words after them."""

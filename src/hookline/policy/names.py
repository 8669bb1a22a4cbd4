"""Names: common argument names of tools, and programs that reach beyond this machine."""

from hookline.text.printable import names

COMMANDS = names("command cmd commands script command_line argv shell")
"""Arguments that hold a command line."""
PATHS = names(
    "path paths file files filename file_path filepath dir directory folder cwd root source "
    "target destination src dst from to old_path new_path output input uri location workdir"
)
"""Arguments that hold a path."""
TEXTS = names("content text body old new message prompt edits query")
"""Arguments that hold prose or file content: names in them are not touched."""
HOSTS = names("host hostname server domain address endpoint")
"""Arguments that hold a host."""
GLOBS = names("glob pattern include")
"""Arguments that hold wildcards over files."""
NETWORK = names(
    "curl wget nc ncat netcat telnet ssh scp sftp rsync ftp tftp socat dig nslookup host ping "
    "traceroute git pip pip3 pipx uv poetry conda npm npx yarn pnpm cargo gem go apt apt-get brew "
    "docker podman gh aws gcloud az kubectl helm terraform ansible aria2c http https xh lynx w3m "
    "openssl s3cmd rclone mail sendmail mosh iperf nmap whois"
)
"""Programs that reach beyond this machine."""
LOCAL_GIT = names(
    "add blame branch checkout cherry-pick commit config diff grep init log merge mv rebase reset "
    "restore revert rm show stash status switch tag worktree apply bisect clean describe ls-files "
    "rev-parse"
)
"""What git does without the network."""
HIDDEN = names(
    ".env .env.local .env.production .env.staging .env.development .env.test .ssh .gnupg .aws "
    ".azure .kube .netrc .pgpass .npmrc .pypirc .git-credentials .password-store .htpasswd "
    ".docker .bashrc .bash_profile .profile .zshrc .zshenv"
)
"""Hidden files and folders that the shipped packs protect, by their names."""
SECRET_STARTS = (
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "secrets.",
    "credentials.json",
    ".env.prod",
    ".env.stag",
)
SECRET_ENDS = (".pem", ".key", ".p12", ".pfx", ".kdbx", ".keystore")
"""How names of files with secrets begin and end."""
MADE = names(
    "node_modules .venv venv __pycache__ .tox .nox .mypy_cache .pytest_cache .ruff_cache "
    "site-packages objects"
)
"""Folders that tools fill."""
FACTS = sorted(
    names(
        "arguments argument_text workspace session source permissions paths path_text outside "
        "programs command_text options operators opaque dynamic hosts host_text network "
        "hosts_allowed spent budget"
    )
)
"""Everything that a policy can ask for as `context.NAME`."""

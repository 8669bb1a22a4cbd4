"""Places that no confined child may read: keys, credentials, other people's files, agents' sockets."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from .words import words

HOMES = ("/home", "/root", "/Users", "/var/home", "/var/root", "/export/home")
"""Folders that are homes or hold them."""

HOME_NAMES = words(
    r"""
    # keys and credentials of tools
    .ssh .gnupg .pki .aws .azure .boto .s3cfg .oci .aliyun .bluemix .scaleway .hcloud .doctl
    .linode-cli .config/gcloud .config/gh .config/glab-cli .config/hub .config/doctl
    .config/hcloud .config/scw .config/op .config/fly .fly .config/netlify .netlify
    .config/heroku .vercel .config/configstore .config/sops .config/age .config/rclone
    .config/restic .config/github-copilot .config/helm .config/containers .config/pip
    .config/pypoetry .config/uv/credentials .config/anthropic .config/openai .kube .docker .helm
    .minikube .terraform.d .terraformrc .pulumi .chef .ansible .vagrant.d .vault-token .netrc
    _netrc .authinfo .authinfo.gpg .npmrc .yarnrc .yarnrc.yml .pypirc .pip .gem/credentials
    .cargo/credentials .cargo/credentials.toml .m2/settings.xml .m2/settings-security.xml
    .gradle/gradle.properties .nuget .config/NuGet .composer/auth.json
    .config/composer/auth.json .git-credentials .config/git/credentials .git-credential-cache
    .cache/git .gitcookies .subversion/auth .hgrc .databrickscfg .snowflake .snowsql .pgpass
    .my.cnf .mylogin.cnf .mongorc.js .dbshell .rediscli_auth .kaggle .huggingface
    .cache/huggingface/token .cache/huggingface/stored_tokens .wandb .ollama/id_ed25519 .msmtprc
    .fetchmailrc .mutt .muttrc .offlineimaprc .mbsyncrc .config/neomutt .smbcredentials .davfs2
    .rhosts .shosts .Xauthority .ICEauthority .google_authenticator .yubico .step .acme.sh
    .certbot
    # shell and tool histories hold what people typed
    .bash_history .zsh_history .zhistory .histfile .history .local/share/fish .python_history
    .node_repl_history .psql_history .mysql_history .sqlite_history .rediscli_history .lesshst
    .viminfo .irb_history .local/share/nano .local/state/bash .local/state/zsh
    .local/share/recently-used.xbel
    # password stores, keyrings, wallets
    .password-store .local/share/keyrings .local/share/kwalletd .kde/share/apps/kwallet
    .config/Bitwarden .config/1Password .1password .config/keepassxc .keepass .config/KeePass
    .lastpass .local/share/gopass .config/gopass .bitcoin .ethereum .electrum .monero
    .config/solana .config/Ledger*
    # browsers, mail and chat
    .mozilla .firefox .thunderbird .config/google-chrome .config/google-chrome-beta
    .config/chromium .config/BraveSoftware .config/microsoft-edge .config/vivaldi .config/opera
    .librewolf .zen .cache/mozilla .cache/google-chrome .cache/chromium .config/Slack
    .config/discord .config/Signal .config/Element .config/TelegramDesktop
    .local/share/TelegramDesktop .config/evolution .local/share/evolution snap .var
    # sockets of container engines and key agents: a way out of any sandbox
    .colima .lima .rd .orbstack .local/share/containers .local/share/docker .local/share/lima
    .finch .multipass .bitwarden-ssh-agent.sock .keychain .emacs.d/server .cache/keyring-*
    .local/share/ssh-agent .local/share/secretive .local/state/ssh-agent
    # other agents' own state and the editors' stored tokens
    .claude .claude.json .codex .gemini .cursor .continue .aider.conf.yml .config/github-copilot
    .config/Code .config/Cursor .vscode-server .config/JetBrains .local/share/JetBrains
    # macOS
    Library/Keychains Library/Cookies Library/Mail Library/Messages Library/Safari
    Library/Application\ Support/Google Library/Application\ Support/Firefox
    Library/Application\ Support/com.apple.TCC Library/Application\ Support/1Password
    """
)
"""Relative to a home."""

SYSTEM_NAMES = words(
    r"""
    /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/master.passwd /etc/security/opasswd
    /etc/sudoers /etc/sudoers.d /etc/doas.conf /etc/ssh/*_key /etc/ssh/ssh_host_*key
    /etc/ssl/private /etc/pki/tls/private /etc/letsencrypt /etc/krb5.keytab /etc/wireguard
    /etc/openvpn /etc/ipsec.secrets /etc/ipsec.d /etc/swanctl /etc/ppp
    /etc/NetworkManager/system-connections /etc/netplan /etc/wpa_supplicant /etc/kubernetes
    /etc/rancher /etc/docker /etc/containers/auth.json /etc/cni /etc/mysql/debian.cnf /etc/redis
    /etc/samba/smbpasswd /etc/cifs* /etc/exim4/passwd.client /etc/postfix/sasl_passwd* /etc/nut
    /etc/snmp /etc/vault* /etc/consul* /etc/credstore /etc/credstore.encrypted /etc/grub.d
    /boot/grub /var/lib/docker /var/lib/containerd /var/lib/containers /var/lib/kubelet
    /var/lib/rancher /var/lib/etcd /var/lib/postgresql /var/lib/pgsql /var/lib/mysql
    /var/lib/redis /var/lib/mongodb /var/lib/sss /var/lib/NetworkManager /var/lib/bluetooth
    /var/lib/iwd /var/lib/systemd /var/lib/private /var/lib/samba /var/lib/lxd /var/lib/incus
    /var/lib/libvirt /var/lib/machines /var/lib/cloud /var/lib/jenkins /var/lib/gitlab
    /var/lib/vault /var/lib/tailscale /var/lib/tor /var/lib/grafana /var/lib/waagent /var/snap
    /var/spool /var/mail /var/backups /var/crash /var/cache/debconf /var/db/sudo /private/var/db
    /Library/Keychains /System/Library/Keychains /secrets /vault /kaniko /tmp/.X11-unix
    """
)
"""On any machine; most are unreadable for ordinary users anyway, but not for root."""

AGENT_SOCKETS = words(
    """
    SSH_AUTH_SOCK DBUS_SESSION_BUS_ADDRESS DBUS_SYSTEM_BUS_ADDRESS GPG_AGENT_INFO XDG_RUNTIME_DIR
    DOCKER_HOST CONTAINER_HOST PODMAN_HOST BUILDKIT_HOST CONTAINERD_ADDRESS GNOME_KEYRING_CONTROL
    WAYLAND_DISPLAY PULSE_SERVER TMUX STY I3SOCK SWAYSOCK KITTY_LISTEN_ON NVIM NVIM_LISTEN_ADDRESS
    VSCODE_IPC_HOOK VSCODE_IPC_HOOK_CLI VSCODE_GIT_IPC_HANDLE
    """
)
"""Variables that name the socket of an agent, an engine or an editor, or its folder."""


def user_homes() -> list[Path]:
    """The user's own home: as the environment has it, and as the system has it."""
    found = [Path(given)] if (given := os.environ.get("HOME")) else []
    try:
        import pwd

        found.append(Path(pwd.getpwuid(os.getuid()).pw_dir))
    except (ImportError, KeyError):
        pass
    return [path for path in unique(found) if path.is_dir() and path != Path("/")]


def other_homes() -> list[Path]:
    """Homes of people that are not below the usual folders."""
    found: list[Path] = []
    try:
        lines = Path("/etc/passwd").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    for fields in (line.split(":") for line in lines):
        if len(fields) < 7 or not fields[2].isdigit() or not 1000 <= int(fields[2]) < 65534:
            continue
        if fields[5].startswith("/") and len(fields[5]) > 1:
            found.append(Path(fields[5]))
    return unique(found)


def in_home(home: Path) -> Iterator[Path]:
    """The secret places of a home that exist."""
    for name in HOME_NAMES:
        yield from _existing(home, name)


def in_system() -> Iterator[Path]:
    """The secret places of this machine that exist."""
    for name in SYSTEM_NAMES:
        yield from _existing(Path("/"), name[1:])


def folders(homes: Iterable[Path]) -> list[str]:
    """The folders in which secret places may appear, whether they exist or not."""
    names = [name for name in SYSTEM_NAMES if not name.startswith("/tmp/")]  # a child has its own
    names += [f"{home}/{name}" for home in homes for name in HOME_NAMES]
    return list(dict.fromkeys(name.rpartition("/")[0] or "/" for name in names))


def agent_sockets() -> Iterator[Path]:
    """The sockets named by the environment, if they are in a folder that would be visible."""
    for name in AGENT_SOCKETS:
        value = os.environ.get(name, "").partition(",")[0]
        for scheme in ("unix://", "unix:path=", "unix:"):
            value = value.removeprefix(scheme)
        value = value.partition(":")[0]
        if value.startswith("/") and os.path.lexists(value):
            yield Path(value)


def _existing(base: Path, name: str) -> Iterator[Path]:
    if "*" in name:
        folder, _, pattern = name.rpartition("/")
        yield from (base / folder).glob(pattern)
    elif os.path.lexists(path := base / name):
        yield path


def unique(paths: Iterable[Path]) -> list[Path]:
    """Resolved, without repetition, in order."""
    return list(dict.fromkeys(path.resolve() for path in paths))

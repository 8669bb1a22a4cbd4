"""Signatures of the audit log, made with a key that this process never holds.

A checkpoint signs the hash of the last line, and so every line before it. Another program holds the
key: one that the settings name, which gets the statement on standard input and prints a signature; or
`ssh-keygen`, with a key file outside the home or a key in an agent or on a token.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import RLock, Thread, Timer
from typing import Any, Protocol

from hookline.errors import AuditError

from .audit import AuditLog
from .hash_chain import Head

log = logging.getLogger("hookline.policy.audit")

NAMESPACE = "hookline-audit"
SECONDS = 20.0
"""How long a signature may take."""
SSH = ("ssh-", "ecdsa-", "sk-")
ARMOUR = "-----BEGIN SSH SIGNATURE-----"


def statement(seq: int, digest: str, at: float) -> bytes:
    """The signed statement: the last line, its hash, and the time."""
    return f"{NAMESPACE}\n{seq}\n{digest}\n{at:.6f}\n".encode("ascii")


class Signer(Protocol):
    """Makes signatures."""

    def sign(self, data: bytes) -> str:
        """The signature of some bytes, as text."""
        ...


class CommandSigner:
    """A program that gets the statement on standard input and prints its signature."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = [*command]

    def sign(self, data: bytes) -> str:
        """What the program printed."""
        return _printed(self._command, data)


class SSHSigner:
    """`ssh-keygen -Y sign`, with a private key file, or a public one whose key an agent holds."""

    def __init__(self, key: Path, home: Path) -> None:
        path = key.expanduser()
        if not path.is_absolute():
            raise AuditError(f"[audit] key must be an absolute path outside the home, not {key}")
        if path.resolve().is_relative_to(home.resolve()):
            raise AuditError(
                f"[audit] key {path} is in Hookline's home: who can write the log could sign it; "
                "move the key elsewhere"
            )
        if not path.exists():
            raise AuditError(f"[audit] key {path} does not exist")
        self._key = path

    def sign(self, data: bytes) -> str:
        """An armoured SSH signature."""
        command = ["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(self._key)]
        return _printed(command, data)


def _printed(command: Sequence[str], data: bytes) -> str:
    code, said, told = _called(command, data)
    if code or not said:
        raise AuditError(f"{command[0]} made no signature (exit code {code}): {told[:500]}")
    return said


def _called(command: Sequence[str], data: bytes) -> tuple[int, str, str]:
    """Run a program with `data` on standard input. Returns its exit code and its output."""
    from hookline.system.children.environment import environment
    from hookline.system.children.process import PIPE, popen

    env = environment(keep=("SSH_AUTH_SOCK", "PKCS11_*"))
    try:
        with popen(command, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE) as child:
            try:
                out, err = child.communicate(data, timeout=SECONDS)
            except BaseException:
                child.kill()
                raise
    except Exception as error:  # it is not there, cannot be run, or took too long
        raise AuditError(f"{command[0]} made no signature: {error}") from error
    texts = [each.decode("utf-8", "replace").strip() for each in (out, err)]
    return child.returncode, texts[0], texts[1]


class Checkpoints:
    """Signs the head of a log every so many lines or seconds, and when it is closed.

    That happens in a thread, next to the decisions. With `required`, a decision waits for a signature
    that failed before, and is denied without it.
    """

    def __init__(
        self,
        audit: AuditLog,
        signer: Signer,
        *,
        every: int,
        seconds: float,
        required: bool = False,
        witness: Path | None = None,
    ) -> None:
        self._log = audit
        self._signer = signer
        self._every = every
        self._seconds = seconds
        self._required = required
        self._witness = witness
        self._lock = RLock()
        self._head: Head | None = None
        self._unsigned = 0
        self._failed = False
        self._timer: Timer | None = None
        self._thread: Thread | None = None

    def before_writing(self) -> None:
        """Refuse to continue without required signatures."""
        if self._required and self._failed:
            self.sign()

    def written(self, head: Head, lines: int) -> None:
        """Lines were written: sign them soon."""
        with self._lock:
            self._head = head
            self._unsigned += lines
            if self._unsigned >= self._every and (self._thread is None or not self._thread.is_alive()):
                self._thread = Thread(target=self._sign_quietly, name="audit-signature", daemon=True)
                self._thread.start()
            elif self._timer is None:
                self._timer = Timer(self._seconds, self._sign_quietly)
                self._timer.daemon = True
                self._timer.start()

    def close(self) -> None:
        """Sign unsigned lines."""
        if self._thread is not None:
            self._thread.join(2 * SECONDS)
        self._sign_quietly()

    def sign(self) -> None:
        """Sign the last line that this process wrote."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            head, lines = self._head, self._unsigned
            if head is None or not lines:
                return
        at = round(time.time(), 6)
        try:
            signature = self._signer.sign(statement(head.seq, head.hash, at))
        except AuditError as error:
            self._note_failure(error)
            raise
        with self._lock:
            self._failed = False
            self._unsigned -= lines
            self._log.append([_record(head, at, signature)])
        if self._witness is not None:
            _noted(self._witness, head, at, signature)

    def _note_failure(self, error: AuditError) -> None:
        """Write into the log that signatures fail, once: lines without one must have a reason."""
        with self._lock:
            is_first, self._failed = not self._failed, True
            if is_first:
                record = {"kind": "signing", "outcome": "failed", "error": str(error)}
                self._head = self._log.append([record])
                self._unsigned += 1

    def _sign_quietly(self) -> None:
        try:
            self.sign()
        except AuditError as error:
            log.error("audit.not_signed error=%s", error)


def _record(head: Head, at: float, signature: str) -> dict[str, Any]:
    return {
        "kind": "signature",
        "outcome": "signed",
        "signed": head.seq,
        "head": head.hash,
        "at": at,
        "signature": signature,
    }


def _noted(path: Path, head: Head, at: float, signature: str) -> None:
    """Add a signed head to a file elsewhere."""
    line = f"{head.seq} {head.hash} {at:.6f} {base64.b64encode(signature.encode()).decode()}\n"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(handle, line.encode("ascii"))
        finally:
            os.close(handle)
    except OSError as error:
        raise AuditError(f"[audit] witness {path} cannot be written: {error}") from error


def witnessed(path: Path) -> tuple[Head, float, str]:
    """The last signed head in a witness file."""
    try:
        *_, last = path.read_text(encoding="ascii").splitlines()
        seq, digest, at, signature = last.split(" ")
        return Head(int(seq), digest), float(at), base64.b64decode(signature).decode()
    except (OSError, ValueError) as error:
        raise AuditError(f"the witness {path} cannot be read: {error}") from error


# --- verification -----------------------------------------------------------------------------


def verifier(path: Path) -> Callable[[bytes, str], bool]:
    """Checks signatures with a public key: of OpenSSH, or PEM (Ed25519, ECDSA, RSA)."""
    try:
        text = path.expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise AuditError(f"the public key {path} cannot be read: {error}") from error
    if text.startswith(SSH):
        keys = [line for line in text.splitlines() if line.startswith(SSH)]
        return lambda data, signature: _ssh_verified(keys, data, signature)
    if "PUBLIC KEY" not in text:
        raise AuditError(f"{path} is no public key; it must be one of OpenSSH, or PEM")
    return _pem_verifier(text, path)


def _ssh_verified(keys: list[str], data: bytes, signature: str) -> bool:
    if not signature.startswith(ARMOUR):
        return False
    with tempfile.TemporaryDirectory() as folder:
        signers, signed = Path(folder, "signers"), Path(folder, "signature")
        signers.write_text("".join(f'audit namespaces="{NAMESPACE}" {key}\n' for key in keys))
        signed.write_text(signature + "\n")
        command = ["ssh-keygen", "-q", "-Y", "verify", "-n", NAMESPACE, "-I", "audit"]
        code, _, _ = _called([*command, "-f", str(signers), "-s", str(signed)], data)
    return code == 0


def _pem_verifier(text: str, path: Path) -> Callable[[bytes, str], bool]:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError as error:
        raise AuditError(
            f"a PEM key needs cryptography: pip install 'hookline[audit]' ({error})"
        ) from error
    try:
        key = load_pem_public_key(text.encode())
    except ValueError as error:
        raise AuditError(f"{path} is no public key: {error}") from error
    if not isinstance(key, ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey):
        raise AuditError(f"{path} must be a key for Ed25519, ECDSA or RSA")

    def verify(data: bytes, signature: str) -> bool:
        try:
            raw = base64.b64decode("".join(signature.split()), validate=True)
            if isinstance(key, ed25519.Ed25519PublicKey):
                key.verify(raw, data)
            elif isinstance(key, ec.EllipticCurvePublicKey):
                key.verify(raw, data, ec.ECDSA(hashes.SHA256()))
            else:
                key.verify(raw, data, padding.PKCS1v15(), hashes.SHA256())
        except (InvalidSignature, binascii.Error, ValueError):
            return False
        return True

    return verify

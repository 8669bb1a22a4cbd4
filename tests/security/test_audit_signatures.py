"""The audit log is signed with a key that Hookline never holds: rewriting and truncation are found."""

import base64
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from hookline.errors import AuditError
from hookline.policy.audit import AuditLog
from hookline.policy.hash_chain import ROOT, Head, head_file, sealed, verify
from hookline.policy.signature import Checkpoints, CommandSigner, SSHSigner, statement, verifier

from .. import commandline

pytestmark = pytest.mark.slow

SIGN = """
import base64, sys
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding
key = serialization.load_pem_private_key(open(sys.argv[1], "rb").read(), None)
data = sys.stdin.buffer.read()
assert data.startswith(b"hookline-audit\\n")
more = () if isinstance(key, ed25519.Ed25519PrivateKey) else (
    (ec.ECDSA(hashes.SHA256()),) if isinstance(key, ec.EllipticCurvePrivateKey)
    else (padding.PKCS1v15(), hashes.SHA256()))
print(base64.b64encode(key.sign(data, *more)).decode())
"""
TURNS = """
[[turns]]
tool_calls = [{ name = "write_file", arguments = { path = "x", content = "y" } }]
[[turns]]
text = "done"
"""
KINDS = {
    "ed25519": ed25519.Ed25519PrivateKey.generate,
    "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
}


class InProcess:
    """A signer for tests that are not about the signer: no process is started."""

    def __init__(self, key):
        self._key = key

    def sign(self, data):
        return base64.b64encode(self._key.sign(data)).decode()


def public(key, path):
    path.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return path


class Audit:
    """A signed log, and the command that verifies it."""

    def __init__(self, folder, hookline):
        self.home, self.folder, self.hookline = folder / "home", folder, hookline
        self.path = self.home / "audit" / "audit.jsonl"
        self.witness = folder / "witness"
        self.key = ed25519.Ed25519PrivateKey.generate()
        self.public = public(self.key, folder / "key.pem")
        self.log = AuditLog(self.path)

    def checkpoints(self, **options):
        wanted = {"every": 1000, "seconds": 1000.0, "witness": self.witness, **options}
        return Checkpoints(self.log, InProcess(self.key), **wanted)

    def write(self, *counts):
        """Write lines, and sign after each number of them."""
        checkpoints = self.checkpoints()
        for count in counts:
            records = [{"kind": "decision", "tool": f"t{n}", "outcome": "denied"} for n in range(count)]
            checkpoints.written(self.log.append(records), count)
            checkpoints.close()

    def lines(self):
        return self.path.read_text().splitlines(keepends=True)

    def forge(self, lines):
        """Replace the log, with hashes and a head that fit: what a stranger with the home can do."""
        head, text = Head(0, ROOT), ""
        for line in lines:
            record = json.loads(line)
            body = {k: v for k, v in record.items() if k not in ("seq", "prev", "hash")}
            made, head = sealed(body, head)
            text += made
        self.put(text, head)

    def put(self, text, head):
        self.path.write_text(text)
        head_file(self.path).write_text(f"{head.seq:020d} {head.hash}\n")

    def cut(self, keep):
        """Cut the end off, with a head that fits."""
        lines = self.lines()[:keep]
        last = json.loads(lines[-1])
        self.put("".join(lines), Head(last["seq"], last["hash"]))

    def verify(self, *options):
        return self.hookline("audit", "verify", "--key", self.public, *options)

    def broken(self, *options):
        found = self.verify(*options)
        assert found.returncode == 1, found.stdout
        return found.stderr


@pytest.fixture
def audit(tmp_path, monkeypatch, capsys):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[audit]\nenabled = true\n")
    return Audit(tmp_path, commandline.here(home, tmp_path, monkeypatch, capsys))


def test_a_signed_log_holds(audit):
    audit.write(3, 4)
    found = audit.verify("--witness", audit.witness)
    assert found.returncode == 0, found.stderr
    assert "9 line(s), nothing changed; signed up to line 8" in found.stdout


def changed(lines, index, /, **fields):
    record = {**json.loads(lines[index]), **fields}
    return [*lines[:index], json.dumps(record) + "\n", *lines[index + 1 :]]


FORGERIES = {
    "a line rewritten": lambda lines: changed(lines, 1, outcome="allowed"),
    "the first line rewritten": lambda lines: changed(lines, 0, outcome="allowed"),
    "the last signed line rewritten": lambda lines: changed(lines, 7, outcome="allowed"),
    "a time rewritten": lambda lines: changed(lines, 2, time=1.0),
    "a line removed": lambda lines: [*lines[:1], *lines[2:]],
    "the first line removed": lambda lines: lines[1:],
    "two lines swapped": lambda lines: [lines[1], lines[0], *lines[2:]],
    "a line inserted": lambda lines: [lines[0], lines[0], *lines[1:]],
    "a line moved to the end": lambda lines: [*lines[1:], lines[0]],
    "all signatures removed": lambda lines: [line for line in lines if "signature" not in line],
    "the last signature removed, the one before kept, a line between changed": lambda lines: changed(
        lines[:-1], 1, outcome="allowed"
    ),
    "signed hash replaced": lambda lines: changed(lines, 8, head="0" * 64),
    "signed number replaced": lambda lines: changed(lines, 8, signed=2),
    "signed number from the future": lambda lines: changed(lines, 8, signed=99),
    "signature of another line": lambda lines: changed(
        lines, 8, signature=json.loads(lines[3])["signature"]
    ),
    "time of the signature replaced": lambda lines: changed(lines, 8, at=1.0),
    "signature emptied": lambda lines: changed(lines, 8, signature=""),
    "signature no text": lambda lines: changed(lines, 8, signature=7),
    "signature no base64": lambda lines: changed(lines, 8, signature="!!"),
    "signature of wrong length": lambda lines: changed(lines, 8, signature="QUJD"),
    "signature line of another kind": lambda lines: changed(lines, 8, kind="decision"),
    "an empty log": lambda _: [],
}


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("witnessed", [True, False])
def test_a_log_that_was_written_anew_with_fitting_hashes_does_not_hold(audit, forgery, witnessed):
    audit.write(3, 4)
    audit.forge(FORGERIES[forgery](audit.lines()))
    assert audit.broken(*(["--witness", audit.witness] if witnessed else ["--complete"]))


@pytest.mark.parametrize("keep", range(1, 9))
def test_an_end_that_was_cut_off_is_known_to_the_witness(audit, keep):
    audit.write(3, 4)
    audit.cut(keep)
    told = audit.broken("--witness", audit.witness)
    assert "witness" in told or "no line is signed" in told


@pytest.mark.parametrize("keep", range(1, 9))
def test_an_end_that_was_cut_off_is_known_by_a_hash_noted_elsewhere(audit, keep):
    audit.write(3, 4)
    head = verify(audit.path).head.hash
    audit.cut(keep)
    assert audit.broken("--head", head)


def test_lines_after_the_last_signature_are_reported(audit):
    audit.write(3)
    audit.log.append([{"kind": "decision", "outcome": "denied"}] * 2)
    found = audit.verify()
    assert found.returncode == 0
    assert "2 line(s) after line 4 are not signed" in found.stderr
    assert "2 line(s) after line 4 are not signed" in audit.broken("--complete")


def test_another_key_is_told_from_ours(audit, tmp_path):
    audit.write(3)
    other = public(ed25519.Ed25519PrivateKey.generate(), tmp_path / "other.pem")
    found = audit.hookline("audit", "verify", "--key", other)
    assert (found.returncode, "is not of this key" in found.stderr) == (1, True)


@pytest.mark.parametrize("line", ["", "1 2 3", "x y z w", "9 " + "0" * 64 + " 1.0 QQ=="])
def test_a_forged_witness_is_no_witness(audit, line):
    audit.write(3)
    audit.witness.write_text(line + "\n" if line else "")
    assert audit.verify("--witness", audit.witness).returncode != 0


@pytest.mark.parametrize(
    "text", ["", "hello", "-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----\n"]
)
def test_what_is_no_public_key_is_told(audit, tmp_path, text):
    audit.write(1)
    (tmp_path / "bad").write_text(text)
    found = audit.hookline("audit", "verify", "--key", tmp_path / "bad")
    assert (found.returncode, "public key" in found.stderr) == (2, True)


# --- when it is signed ---


def test_it_is_signed_after_so_many_lines_beside_the_decisions(audit):
    checkpoints = audit.checkpoints(every=5)
    for _ in range(5):
        checkpoints.written(audit.log.append([{"kind": "decision"}]), 1)
    checkpoints._thread.join(10)
    assert verify(audit.path).signed == Head(5, json.loads(audit.lines()[4])["hash"])


def test_it_is_signed_after_so_many_seconds(audit):
    checkpoints = audit.checkpoints(seconds=0.05)
    checkpoints.written(audit.log.append([{"kind": "decision"}]), 1)
    deadline = time.monotonic() + 10
    while verify(audit.path).signed is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert verify(audit.path).signed.seq == 1


def test_it_is_signed_at_the_end_and_once(audit):
    checkpoints = audit.checkpoints()
    checkpoints.written(audit.log.append([{"kind": "decision"}]), 1)
    checkpoints.close()
    checkpoints.close()
    assert [json.loads(line)["kind"] for line in audit.lines()] == ["decision", "signature"]


@pytest.mark.parametrize("required", [True, False])
def test_without_a_signature_decisions_are_denied_only_where_it_is_required(audit, required, caplog):
    failing = Checkpoints(
        audit.log, CommandSigner(["false"]), every=1, seconds=1000.0, required=required
    )
    failing.before_writing()
    failing.written(audit.log.append([{"kind": "decision"}]), 1)
    failing._thread.join(10)
    assert "false made no signature" in caplog.text
    if required:
        with pytest.raises(AuditError, match="made no signature"):
            failing.before_writing()
    else:
        failing.before_writing()


def test_that_signatures_fail_is_a_line_of_the_log_once(audit):
    failing = Checkpoints(audit.log, CommandSigner(["false"]), every=1000, seconds=1000.0)
    failing.written(audit.log.append([{"kind": "decision"}]), 1)
    failing.close()
    failing.written(audit.log.append([{"kind": "decision"}]), 1)
    failing.close()
    records = [json.loads(line) for line in audit.lines()]
    assert [record["kind"] for record in records] == ["decision", "signing", "decision"]
    assert "made no signature" in records[1]["error"]
    checkpoints = audit.checkpoints()
    checkpoints.written(audit.log.append([{"kind": "decision"}]), 4)
    checkpoints.close()
    assert verify(audit.path).signed.seq == 4


# --- programs that sign ---


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_signs_with_a_key_of_its_own(tmp_path, kind):
    key = KINDS[kind]()
    private, script = tmp_path / "private.pem", tmp_path / "sign.py"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    script.write_text(SIGN)
    said = statement(7, "a" * 64, 1.5)
    signature = CommandSigner([sys.executable, str(script), str(private)]).sign(said)
    holds = verifier(public(key, tmp_path / "public.pem"))
    assert holds(said, signature)
    for other in (statement(8, "a" * 64, 1.5), statement(7, "b" * 64, 1.5), statement(7, "a" * 64, 2)):
        assert not holds(other, signature)


@pytest.mark.parametrize("command", [["false"], ["true"], ["/nowhere/program"], ["cat", "/nowhere"]])
def test_a_program_that_makes_no_signature_is_told(command):
    with pytest.raises(AuditError, match="made no signature"):
        CommandSigner(command).sign(b"x")


@pytest.fixture
def ssh_key(tmp_path):
    key = tmp_path / "keys" / "audit"
    key.parent.mkdir()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    return key


def test_ssh_signs_with_a_key_outside_the_home(tmp_path, ssh_key):
    said = statement(7, "a" * 64, 1.5)
    signature = SSHSigner(ssh_key, tmp_path / "home").sign(said)
    holds = verifier(ssh_key.with_suffix(".pub"))
    assert holds(said, signature)
    assert not holds(statement(8, "a" * 64, 1.5), signature)
    assert not holds(said, signature.replace("A", "B"))
    assert not holds(said, "nonsense")


def test_an_ssh_signature_for_something_else_does_not_count(tmp_path, ssh_key):
    said = statement(7, "a" * 64, 1.5)
    command = ["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", str(ssh_key)]
    signature = subprocess.run(command, input=said, capture_output=True, check=True).stdout.decode()
    assert not verifier(ssh_key.with_suffix(".pub"))(said, signature.strip())


@pytest.mark.parametrize("where", ["home/key", "home/deep/key", "link"])
def test_a_key_in_the_home_is_refused(tmp_path, where):
    home = tmp_path / "home"
    (home / "deep").mkdir(parents=True)
    (home / "key").write_text("x")
    (home / "deep" / "key").write_text("x")
    (tmp_path / "link").symlink_to(home / "key")
    with pytest.raises(AuditError, match="is in Hookline's home"):
        SSHSigner(tmp_path / where, home)


@pytest.mark.parametrize("key", ["relative", "/nowhere/key"])
def test_a_key_that_cannot_be_used_is_told(tmp_path, key):
    with pytest.raises(AuditError, match=r"\[audit\] key"):
        SSHSigner(Path(key), tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        'sign = ["x"]\nkey = "/y"',
        "required = true",
        'witness = "/x"',
        "sign = []",
        "every = 0",
        "seconds = 0",
    ],
)
def test_settings_that_make_no_sense_are_told(audit, text):
    (audit.home / "config.toml").write_text(f"[audit]\nenabled = true\n{text}\n")
    found = audit.hookline("doctor")
    assert found.returncode != 0
    assert "audit" in found.stdout + found.stderr


def test_a_run_leaves_a_signed_log(audit, ssh_key):
    (audit.home / "config.toml").write_text(
        f'[audit]\nenabled = true\nkey = "{ssh_key}"\nwitness = "{audit.witness}"\n'
        '[policy]\ndefault = "allow"\n'
    )
    script = audit.folder / "turns.toml"
    script.write_text(TURNS)
    ran = audit.hookline("run", "--model", f"scripted:{script}", "hello")
    assert ran.returncode == 0, ran.stderr
    key = ssh_key.with_suffix(".pub")
    found = audit.hookline("audit", "verify", "--key", key, "--witness", audit.witness, "--complete")
    assert found.returncode == 0, found.stderr
    assert "signed up to line" in found.stdout

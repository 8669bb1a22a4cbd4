"""Safeguards: what stands around an app by configuration: approvals, redaction, audit, closed gates.

    [hooks]     on_gate_error = "deny"
    [audit]     enabled = true
    [redaction] enabled = true

Each is in place while the app runs. One that is configured and cannot be had stops the run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hookline.hooks import HooklineError

if TYPE_CHECKING:
    from hookline.policy.approval_storage import ApprovalStorage
    from hookline.policy.approvals import Approvals
    from hookline.policy.audit import AuditLog
    from hookline.policy.audit_records import Auditor
    from hookline.policy.redaction import RedactionSettings, Redactor
    from hookline.policy.settings import AuditSettings
    from hookline.policy.signature import Checkpoints
    from hookline.tape import TapeStore
    from hookline.tools.runner import Approve, Record

    from .app import Hookline

PLUGIN = "redaction"


class Safeguards:
    """The safeguards of one app, each made when it is first needed."""

    def __init__(self, app: Hookline) -> None:
        self._app = app
        self._scope: ExitStack | None = None
        self._is_metered = False

    @contextmanager
    def attached(self) -> Generator[None]:
        """Install the safeguards for the duration of this scope."""
        app = self._app
        with ExitStack() as stack:
            if app.config.on_gate_error() == "deny":
                app.hooks.on_gate_error = "deny"
            self._scope = stack
            stack.callback(setattr, self, "_scope", None)
            if self.redaction is not None:
                from hookline.policy.redaction import RedactionPlugin

                plugin = RedactionPlugin(lambda: self._redactor, app.home / "outputs")
                app.hooks.add(plugin, name=PLUGIN)
                stack.callback(app.hooks.remove, PLUGIN)
            self._add_budgets(stack)
            if self.auditor is not None:
                stack.callback(self.auditor.close)
                stack.callback(app.hooks.trace(self.auditor.dispatched))
            stack.callback(self._close_approvals)
            stack.callback(self.redact_logs())
            yield

    def reload(self) -> None:
        """Apply changed settings; redaction and the audit log are read at the start only."""
        if self._scope is not None:
            if self._app.config.on_gate_error() == "deny":
                self._app.hooks.on_gate_error = "deny"
            self._add_budgets(self._scope)

    def _add_budgets(self, scope: ExitStack) -> None:
        if self._is_metered or not self._budgets():
            return
        from hookline.policy.budgets import PLUGIN as BUDGETS
        from hookline.policy.budgets import BudgetGate

        self._app.hooks.add(BudgetGate(lambda: self._app.policy), name=BUDGETS)
        self._is_metered = True
        scope.callback(setattr, self, "_is_metered", False)
        scope.callback(self._app.hooks.remove, BUDGETS)

    def _budgets(self) -> bool:
        """Whether anybody set a budget; asked without reading the packs."""
        app = self._app
        if "policy" in app.__dict__ or app.given_policy is not None:
            return bool(app.policy.budget)
        settings = app.config.own("policy"), app.config.of_project("policy")
        return any(bool(each.get("budgets")) for each in settings)

    # --- approvals ------------------------------------------------------------------------------

    @cached_property
    def approvals(self) -> Approvals:
        """The questions that wait for a person, and what people allowed."""
        from hookline.policy.approvals import SECONDS, Approvals

        return Approvals(
            self._shared_storage() or self._app.home / "approvals.db",
            seconds=self._app.policy.seconds or SECONDS,
            told=self.auditor.granted if self.auditor is not None else None,
            redact=self.redactor.redact if self.redactor is not None else None,
        )

    def _shared_storage(self) -> ApprovalStorage | None:
        """Stored with the tape if that is in a database: processes that share sessions share these
        too.
        """
        app = self._app
        if not app.config.section("tape"):
            return None
        from hookline.tape.settings import TapeSettings

        settings = app.config.settings("tape", TapeSettings)
        if settings.url is None:
            return None
        try:
            from hookline.policy.postgres_approvals import PostgresApprovals
        except ImportError as error:
            from hookline.errors import ApprovalError

            raise ApprovalError(
                "approvals in PostgreSQL need a library that is not installed; "
                f"run `pip install 'hookline[postgres]'` ({error})"
            ) from error
        return PostgresApprovals(settings, app.home)

    def _close_approvals(self) -> None:
        if "approvals" in self.__dict__:
            self.approvals.close()

    @property
    def approve(self) -> Approve:
        """Decides on a request for approval."""
        from hookline.policy.approval_flow import Approving

        return Approving(self.approvals)

    # --- redaction ------------------------------------------------------------------------------

    @cached_property
    def redaction(self) -> RedactionSettings | None:
        """The redaction rules; None if redaction is off."""
        config = self._app.config
        if not config.section("redaction"):
            return None
        from hookline.policy.redaction import RedactionSettings

        settings = config.settings("redaction", RedactionSettings)
        return settings if settings.enabled else None

    @cached_property
    def _redactor(self) -> Redactor:
        from hookline.policy.redaction import Redactor

        assert self.redaction is not None
        return Redactor.of(self.redaction)

    @property
    def redactor(self) -> Redactor | None:
        """Removes secrets from data before it is stored; None if redaction is off."""
        return self._redactor if self.redaction is not None else None

    @property
    def exporting(self) -> Redactor | None:
        """Redacts what leaves the machine: secrets by default, whatever is stored."""
        from hookline.policy.redaction import RedactionSettings, Redactor

        if not self._app.config.section("redaction"):
            return Redactor(["secrets"])
        settings = self._app.config.settings("redaction", RedactionSettings)
        return Redactor.of(settings) if settings.exported else None

    def redact_logs(self) -> Callable[[], None]:
        """Redact log records and error messages from now on, and return what ends this."""
        from hookline.system.log_redaction import redact_logs

        return redact_logs(self._redact_log)

    def _redact_log(self, text: str) -> str:
        redactor = self._log_redactor
        return text if redactor is None else redactor.text(text)

    @cached_property
    def _log_redactor(self) -> Redactor | None:
        from hookline.policy.redaction import Redactor

        try:
            return self.exporting or self.redactor
        except HooklineError:  # the message says that the settings are wrong
            return Redactor(["secrets"])

    def keeping(self, store: TapeStore) -> TapeStore:
        """The tape's store, wrapped to redact entries if redaction is on."""
        if self.redaction is None:
            return store
        from hookline.policy.redaction import RedactedStore

        return cast("TapeStore", RedactedStore(store, self._redactor))

    # --- audit ----------------------------------------------------------------------------------

    @property
    def audit_path(self) -> Path:
        """Where the audit log is."""
        said: Any = self._app.config.get("audit.path")
        return self._app.home / Path(said or "audit/audit.jsonl").expanduser()

    @cached_property
    def auditor(self) -> Auditor | None:
        """The audit log; None if it is off."""
        config = self._app.config
        if not config.section("audit"):
            return None
        from hookline.policy.settings import AuditSettings

        settings = config.settings("audit", AuditSettings)
        if not settings.enabled:
            return None
        from hookline.policy.audit import AuditLog
        from hookline.policy.audit_records import Auditor

        redact = self.redactor.redact if self.redactor is not None else None
        log = AuditLog(self.audit_path)
        checkpoints = self._checkpoints(log, settings)
        return Auditor(log, payloads=settings.payloads, redact=redact, checkpoints=checkpoints)

    def _checkpoints(self, log: AuditLog, settings: AuditSettings) -> Checkpoints | None:
        """What signs the audit log; None where the settings name no key."""
        if settings.sign is None and settings.key is None:
            return None
        from hookline.policy.signature import Checkpoints, CommandSigner, SSHSigner

        home = self._app.home
        signer = (
            SSHSigner(Path(settings.key), home) if settings.key else CommandSigner(settings.sign or [])
        )
        return Checkpoints(
            log,
            signer,
            every=settings.every,
            seconds=settings.seconds,
            required=settings.required,
            witness=Path(settings.witness).expanduser() if settings.witness else None,
        )

    @property
    def record(self) -> Record | None:
        """Writes the decisions on a call to the audit log."""
        return self.auditor.decided if self.auditor is not None else None

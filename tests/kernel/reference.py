"""The semantics of a dispatch written naively: everything is decided anew for every call."""

import inspect
from contextlib import contextmanager
from dataclasses import replace

import hookline.hooks as hl
from hookline.hooks import DENY, NEWEST, RAISE, SKIP, Decision, Denied, Outcome, Ruling, Verdict

ABSENT = object()
JUDGED = ("gate", "patch", "chain")
REDUCED = {"collect": list, "flatten": list, "merge": dict, "join": str, "patch": Verdict}


class Dispatch:
    """One call of one hook.

    What is attached has a `function`, a `name`, its `seq` among the registrations, a `kind` (def,
    async, wrapper), whether it is a `plugin`, `options` (guard, once, tryfirst, trylast), its
    `order`, a filter `when`, the `key` of its scope, whether its once is `spent`, and `detach()`.
    """

    def __init__(self, spec, arguments, face="call", sync=False, denies=False):
        self.spec, self.face, self.sync = spec, face, sync or spec.sync
        self.arguments = {"ctx": None, **arguments} if spec.event else dict(arguments)
        self.reducer, self.errors = reducer_and_errors(spec, face, denies)
        self.how = self.reducer.name
        if self.how == "around" and self.sync:
            raise hl.CallError("middleware is awaited")
        self.values, self.listed, self.logged = [], [], []  # to reduce, to emit, for the log
        self.verdict = Verdict(arguments.get("event"))
        self.stopped = False

    async def run(self, attached):
        needed = {getattr(self.reducer, name, None) for name in ("parameter", "into")} - {None}
        needed |= {"event"} if self.spec.event else {"call_next"} if self.how == "around" else set()
        if needed - self.arguments.keys():
            raise hl.CallError(needed)
        order = sorted(filter(self.in_scope, attached), key=lambda impl: place(self.spec, impl))
        self.order = [impl for impl in order if impl.kind != "wrapper"]
        wraps = self.face in ("call", "emit")
        value = await self.wrapped([impl for impl in order if impl.kind == "wrapper" and wraps])
        self.seen = value.event if isinstance(value, Verdict) else self.arguments.get("event")
        return self.listed if self.face == "emit" else value

    def log(self, what, impl):
        self.logged.append((what, impl.name))

    def in_scope(self, impl):
        parameter, _, attribute = self.spec.scope.partition(".")
        key = self.arguments.get(parameter)
        return impl.key in (None, getattr(key, attribute, None) if attribute else key)

    async def wrapped(self, wrappers):
        """The reduced value as the wrappers leave it; the first of them is outermost."""
        if not wrappers:
            return await self.core()
        (impl, *inner), generator = wrappers, None
        with self.skipping(impl):
            generator = self.opened(impl)
        if generator is None:
            return await self.wrapped(inner)
        try:
            value = await self.wrapped(inner)
        except BaseException as error:
            return self.closed(generator, generator.throw, error)
        with self.skipping(impl):
            return self.closed(generator, generator.send, value)
        return value

    @contextmanager
    def skipping(self, impl):
        try:
            yield
        except Exception:
            if self.errors is not SKIP:
                raise
            self.log("failed", impl)

    def opened(self, impl):
        given = self.admitted(impl, self.arguments)
        generator = None if given is None else impl.function(**given)
        if generator and next(generator, ABSENT) is ABSENT:
            raise hl.RegistrationError("did not yield")
        return generator

    def closed(self, generator, resume, outcome):
        """What the wrapper returns in place of the reduced value."""
        try:
            resume(outcome)
        except StopIteration as stop:
            value = stop.value
        else:
            generator.close()
            raise hl.RegistrationError("yielded twice")
        if self.how == "notify" or (self.how == "first" and value is None):
            return None
        reduced = REDUCED.get(self.how)
        if value is None or not (isinstance(value, reduced) if reduced else self.spec.accepts(value)):
            raise hl.WrongResult
        return value

    async def around(self, order, arguments):
        """What the rest of a middleware chain returns; the caller's own function is innermost."""
        passing = [self.reducer.passing] if self.reducer.passing else []
        if not order:
            return await arguments["call_next"](*(arguments[name] for name in passing))

        def call_next(*values):
            return self.around(order[1:], {**arguments, **dict(zip(passing, values, strict=True))})

        value = await self.ask(order[0], {**arguments, "call_next": call_next})
        return await self.around(order[1:], arguments) if value is ABSENT else value

    async def core(self):
        if self.how == "around":
            return await self.around(self.order, self.arguments)
        guards = [impl for impl in self.order if "guard" in impl.options and self.how in JUDGED]
        for impl in self.order:
            if impl not in guards:
                await self.step(impl)
        rewrote = [await self.step(guard) for guard in guards]
        last = max((n for n, changed in enumerate(rewrote) if changed), default=0)
        for guard in guards[:last]:  # they judged what a later one changed
            await self.step(guard, again=True)
        return self.reduced()

    async def step(self, impl, again=False):
        """Take in one result, or failure; say whether it rewrote what guards judge."""
        judged = getattr(self.reducer, "parameter", "event")
        before = self.arguments.get(judged)
        try:
            value = ABSENT if self.stopped else await self.ask(impl, self.arguments)
            if value is ABSENT:
                return False
            self.fold(impl, value)
            if again and self.arguments[judged] != before:
                raise hl.Unsettled
            self.listed += [value] if value is not None or not again else []
        except Exception as error:
            self.failed(impl, error)
        return self.arguments.get(judged) != before

    async def ask(self, impl, arguments):
        """What one implementation returns, awaited and checked."""
        given = self.admitted(impl, arguments)
        if given is None:
            return ABSENT
        if impl.kind == "async" and self.sync:
            raise hl.NotAwaited
        value = impl.function(**given)
        if hasattr(value, "__await__") and self.sync:
            getattr(value, "close", int)()
            raise hl.NotAwaited
        value = await value if hasattr(value, "__await__") else value
        checked = value is not None and self.spec.reducer.name != "notify"
        if checked and not self.spec.accepts(value):
            raise hl.WrongResult
        return value

    def admitted(self, impl, arguments):
        """What it is called with; None where its filter does not match or its once is over."""
        judged = bind(self.spec, impl.when, impl.plugin, arguments) if impl.when else {}
        given = bind(self.spec, impl.function, impl.plugin, arguments)
        filtered = impl.when and judged is not None and not impl.when(**judged)
        if filtered or impl.spent:
            return None
        if "once" in impl.options:
            impl.spent = True
            impl.detach()
        if judged is None or given is None:
            raise hl.MissingArgument
        return given

    def fold(self, impl, value):
        reducer = self.reducer
        if self.how == "outcomes":
            self.values.append(Outcome(impl.name, True, value))
        elif value is None:
            self.values += [None] if getattr(reducer, "keep_none", False) else []
        elif self.how == "chain":
            self.pass_on(value)
        elif self.how in ("gate", "patch"):
            try:
                ruling = value.verdict()
            except Exception as error:
                raise hl.WrongResult from error
            self.judge(impl, ruling)
        elif self.how == "flatten":
            value = [value] if reducer.single and not isinstance(value, list | tuple) else value
            self.values += unseen(value, self.values, reducer.unique) if reducer.unique else value
        elif self.how == "merge" and reducer.into:
            self.arguments[reducer.into] = merged([self.arguments[reducer.into], value], reducer.deep)
        else:
            self.values.append(value)
            self.stopped = self.how == "first"

    def pass_on(self, value):
        """Give the next of a chain this value, and the same in the record that carries it."""
        parameter, carrier = self.reducer.parameter, self.reducer.carrier
        self.arguments[parameter] = value
        if self.arguments.get(carrier) is not None:
            self.arguments[carrier] = replace(self.arguments[carrier], **{parameter: value})

    def judge(self, impl, ruling):
        """Apply the changes; the strictest decision stands."""
        verdict = self.verdict
        if not isinstance(ruling, Ruling):
            raise hl.WrongResult
        for name, value in (ruling.changes or {}).items():
            if hasattr(verdict.event, name):
                verdict.event = self.arguments["event"] = replace(verdict.event, **{name: value})
            else:
                verdict.supplied[name] = value
        if ruling.decision > verdict.decision:
            verdict.decision, verdict.reason = ruling.decision, ruling.reason
        verdict.trail.append(replace(ruling, by=impl.name))

    def failed(self, impl, error):
        """Apply the error policy; a guard denies whatever the policy is."""
        skipped = isinstance(error, hl.NotAwaited)
        if skipped:
            self.log("async_not_supported", impl)
        if self.how == "outcomes":
            self.values.append(Outcome(impl.name, False, None, error))
        elif "guard" in impl.options and self.spec.reducer.name == "chain" != self.how:
            self.log("failed", impl)  # by this face there is nothing to withhold
        elif "guard" in impl.options or self.errors is DENY or self.unreadable(error):
            self.deny(impl, error)
        elif self.errors is RAISE and not skipped:
            raise error
        elif not skipped:
            self.log("failed", impl)

    def unreadable(self, error):
        """Whether a gate got an answer that it cannot read, which counts as a no."""
        return self.how == "gate" and isinstance(error, hl.WrongResult)

    def deny(self, impl, error):
        """A failure closes a gate, withholds what a patch or chain carries, or answers no."""
        text = f"{impl.name} failed: {type(error).__name__}{f': {error}' if str(error) else ''}"
        withheld = f"[withheld: {text}]"
        if self.how == "gate":
            self.judge(impl, Ruling(Decision.DENY, text))
        elif self.how == "patch":
            value = (self.reducer.withheld or str)(withheld)
            self.judge(impl, Ruling(reason=withheld, changes={self.reducer.field: value}))
            self.verdict.withheld = True
        elif self.how == "chain":
            self.pass_on(withheld)
        else:
            self.values.append(self.spec.reducer.deny or False)
        self.log("denied", impl)
        self.listed.append(Denied(text))
        self.stopped = self.how in ("patch", "chain", "first")

    def reduced(self):
        reducer, values = self.reducer, self.values
        lowest_first = values[::-1] if self.spec.order is NEWEST else values
        if self.how == "first":
            return values[0] if values else None
        if self.how == "join":
            return reducer.separator.join(filter(None, lowest_first))
        if self.how == "merge" and not reducer.into:
            return merged(lowest_first, reducer.deep)
        if self.how in ("chain", "merge"):
            return self.arguments[reducer.parameter if self.how == "chain" else reducer.into]
        return {"gate": self.verdict, "patch": self.verdict, "notify": None}.get(self.how, values)


def reducer_and_errors(spec, face, denies):
    """What decides one way of calling."""
    name = spec.reducer.name
    if face in ("call", "emit") or (face, name) == ("run", "chain"):
        return spec.reducer, DENY if name == "gate" and denies else spec.errors
    if name in ("gate", "patch", "around"):
        raise hl.CallError("the verdict would be lost")
    reducer = {"first": hl.first, "many": hl.collect(keep_none=True), "run": hl.collect}[face]
    return reducer, SKIP if name == "outcomes" else spec.errors


def place(spec, impl):
    """Where it stands: guards last where they judge, tryfirst before and trylast after the rest;
    the lower order first, then by the hook's own."""
    first, last = "tryfirst" in impl.options, "trylast" in impl.options
    newest_first = first or (spec.order is NEWEST and not last)
    guards_last = "guard" in impl.options and spec.reducer.name in JUDGED
    return guards_last, last - first, impl.order, -impl.seq if newest_first else impl.seq


def bind(spec, function, plugin, arguments):
    """The arguments of one call by the callable's own names; None where one is missing."""
    given, left = {}, dict(arguments)
    for n, p in enumerate(inspect.signature(function).parameters.values()):
        any_name = spec.event and not plugin and n == 0 and p.kind is p.POSITIONAL_OR_KEYWORD
        source = "event" if any_name else p.name
        if p.kind is p.VAR_KEYWORD:
            given.update(left)
        elif source in left:
            given[p.name] = left.pop(source)
        elif p.default is p.empty:
            return None
    return given


def unseen(items, seen, unique):
    """The items whose key was not seen before."""
    fresh = {}
    for item in items:
        fresh.setdefault(getattr(item, unique), item)
    return [item for key, item in fresh.items() if key not in [getattr(old, unique) for old in seen]]


def merged(parts, deep):
    """Several dicts in one; later ones overwrite."""
    out = {}
    for key, value in [pair for part in parts for pair in part.items()]:
        both = deep and isinstance(value, dict) and isinstance(out.get(key), dict)
        out[key] = merged([out[key], value], deep) if both else value
    return out


def finish(coroutine):
    """Run a coroutine that waits for nothing from outside."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return stop.value

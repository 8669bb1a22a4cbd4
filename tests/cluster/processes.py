"""`hookline worker` and `hookline gateway` as processes of their own, on one schema."""

import asyncio
import os
import re
import subprocess
from contextlib import asynccontextmanager

from .. import forks, postgres
from ..gateway.conftest import TOKEN

SERVED = (
    "hookline.cli.gateway", "hookline.serve.server", "hookline.serve.worker",
    "hookline.serve.clustered",
    "hookline.serve.cluster.engine", "hookline.tape.postgres.store", "uvicorn", "websockets",
)  # fmt: skip


class Process:
    """A process, and what it said."""

    def __init__(self, process, said):
        self.process, self.said = process, said
        self._reading = asyncio.create_task(self._read())
        self._more = asyncio.Condition()

    @property
    def pid(self):
        return self.process.pid

    def signal(self, number):
        self.process.send_signal(number)

    async def _read(self):
        lines = asyncio.StreamReader()
        reading = asyncio.StreamReaderProtocol(lines)
        await asyncio.get_running_loop().connect_read_pipe(lambda: reading, self.process.stderr)
        while line := await lines.readline():
            self.said.append(line.decode())
            async with self._more:
                self._more.notify_all()
        async with self._more:
            self._more.notify_all()

    async def until(self, pattern):
        """What was said that matches; or the whole of it, where it ends without."""

        def found():
            return re.search(pattern, "".join(self.said))

        async with asyncio.timeout(60), self._more:
            await self._more.wait_for(lambda: found() or self._reading.done())
        match = found()
        assert match, "".join(self.said)
        return match

    async def ended(self):
        """The exit code."""
        async with asyncio.timeout(60):
            while (code := self.process.poll()) is None:
                await asyncio.sleep(0.01)
            await self._reading
        return code


class Machines:
    """Starts processes on the schema of a cluster."""

    def __init__(self, folder, schema):
        self.folder, self.schema = folder, schema
        self._count = 0
        self.started = []

    def environment(self, **settings):
        wanted = {
            "TAPE__URL": postgres.url(),
            "TAPE__SCHEMA": self.schema,
            "TAPE__HOME": "team",
            "POLICY__DEFAULT": "allow",
            "WORKER__HEARTBEAT": "0.3",
            "WORKER__SILENCE": "2.0",
            "WORKER__POLL": "0.2",
            "WORKER__DRAIN": "5.0",
            **settings,
        }
        self._count += 1
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HOOKLINE_")}
        given = {f"HOOKLINE_{name}": value for name, value in wanted.items() if value is not None}
        home = {"HOOKLINE_HOME": str(self.folder / f"machine{self._count}")}
        return {**kept, **home, "HOOKLINE_GATEWAY__TOKEN": TOKEN, **given}

    async def start(self, *arguments, script="", **settings):
        """A process; `script` is what its model says."""
        environment = self.environment(**settings)
        workspace = self.folder / "work"
        workspace.mkdir(exist_ok=True)
        path = self.folder / f"script{self._count}.toml"
        path.write_text(script or '[[turns]]\ntext = "answered"\n')
        process = await asyncio.to_thread(
            forks.start, forks.MAIN, *arguments, "--model", f"scripted:{path}", cwd=workspace,
            env=environment, imports=SERVED, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        started = Process(process, [])
        self.started.append(started)
        return started

    async def worker(self, script="", **settings):
        """A worker that works."""
        worker = await self.start("worker", script=script, **settings)
        await worker.until("working on")
        return worker

    async def gateway(self, *channels, script="", **settings):
        """A gateway that is up, and its address."""
        enabled = [word for name in channels or ["web"] for word in ("--enable-channel", name)]
        gateway = await self.start("gateway", "--port", "0", *enabled, script=script, **settings)
        return gateway, (await gateway.until(r"is at (http://\S+)"))[1]

    def ran(self):
        """What tools wrote that counts how often they ran."""
        path = self.folder / "work" / "ran.txt"
        return path.read_text().split() if path.exists() else []

    async def until(self, condition):
        """Wait for something that no event tells of: what a process wrote."""
        until = asyncio.get_running_loop().time() + 60
        while not (found := condition()):
            said = "\n".join("".join(each.said) for each in self.started)
            assert asyncio.get_running_loop().time() < until, said
            await asyncio.sleep(0.02)
        return found


@asynccontextmanager
async def machines(folder, schema):
    made = Machines(folder, schema)
    try:
        yield made
    finally:
        for each in made.started:
            each.process.kill()
            await each.ended()

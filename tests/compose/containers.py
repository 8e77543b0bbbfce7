"""Containers of docker-compose.yml as processes: the same commands, environment, checks and users."""

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from cli.processes.children import die_with_parent
from tests.compose import compose_file, docker_file
from tests.compose.docker_file import Image
from tests.compose.namespaces import Network
from tests.waiting import WAIT_SECONDS

DEFAULT_GRACE = "10s"


class Container:
    """A service of the compose file; everything that outlives it is in `place`."""

    def __init__(
        self, name: str, service: Mapping[str, Any], image: Image, network: Network, place: Path, **variables: str
    ) -> None:
        self.service = service
        self.log = place / f"{name}.log"
        self.hostname = secrets.token_hex(6)  # as the first digits of its id
        self.environment = {**image.environment, "HOME": "/", **compose_file.environment(service, variables)}
        self.volumes = list(_volumes(name, service, image, place))
        self._image = image
        self._network = network
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process, "it was not started"
        return self._process

    @property
    def grace(self) -> int:
        return compose_file.seconds(self.service.get("stop_grace_period", DEFAULT_GRACE))

    def start(self, command: Sequence[str] = ()) -> None:
        """With what its image and service say, or another command; what is in memory only is empty then."""
        for source, target, _ in self.volumes:
            if target in self.service.get("tmpfs", ()):
                shutil.rmtree(source)
                _in_memory(source)
        with self.log.open("ab") as log:
            self._process = self._popen(command or self._command, log)

    def execute(self, command: Sequence[str], **variables: str) -> tuple[int, str]:
        """As `docker compose exec`: the exit status and what it wrote."""
        process = self._popen(command, subprocess.PIPE, **variables)
        output, _ = process.communicate(timeout=WAIT_SECONDS)
        return process.returncode, output.decode()

    def wait_until_healthy(self) -> None:
        kind, *check = self.service["healthcheck"]["test"]
        assert kind == "CMD"
        deadline = time.monotonic() + WAIT_SECONDS
        while (answer := self.execute(check))[0] != 0:
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, answer[1] + self.log.read_text()[-3000:]
            time.sleep(0.25)  # each look is a container's own Python

    def stop(self, request: signal.Signals = signal.SIGTERM) -> int:
        """The exit status; raises where an engine would kill it, at the end of the grace time."""
        self.process.send_signal(request)
        return self.process.wait(self.grace)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        if self._process and self.is_running:
            self._process.kill()
            self._process.wait()

    @property
    def _command(self) -> list[str]:
        entrypoint = self.service.get("entrypoint", self._image.entrypoint)
        return [*entrypoint, *self.service.get("command", self._image.command)]

    def _popen(self, command: Sequence[str], output: int | IO[bytes], **variables: str) -> subprocess.Popen[bytes]:
        base, user, directory = self._image.base, self._image.user, self._image.directory
        enter = base.enter(self._image.root, self._network, user, directory)
        environment = {**self.environment, **variables, **base.variables(self._network, self.hostname, self.volumes)}
        return subprocess.Popen([*enter, *command], env=environment, stdout=output, stderr=subprocess.STDOUT)


class Database(Container):
    @property
    def url(self) -> str:
        """The superuser's, from outside of the network, where only the socket is."""
        (socket,) = (source for source, target, _ in self.volumes if target == "/var/run/postgresql")
        return f"postgresql://{self.environment['POSTGRES_USER']}@/todo?host={socket}"

    def kill(self) -> None:
        """With every process in it, as the end of a container's first process does."""
        super().kill()
        deadline = time.monotonic() + WAIT_SECONDS
        while processes := self._processes():  # one of them may have forked since they were listed
            assert time.monotonic() < deadline, processes
            for process in processes:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.01)

    def _processes(self) -> list[int]:
        root = self._image.root.stat().st_ino
        found: list[int] = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it ended
                if (process / "root").stat().st_ino == root:
                    found.append(int(process.name))
        return found


def _volumes(name: str, service: Mapping[str, Any], image: Image, place: Path) -> Iterator[tuple[Path, str, str]]:
    for target in service.get("tmpfs", ()):
        source = place / "tmpfs" / name / target.strip("/").replace("/", "-")
        _in_memory(source)
        yield source, target, "rw"
    for volume in service.get("volumes", ()):
        if isinstance(volume, str):
            source, target = volume.split(":")
            volume = {"source": source, "target": target}
        source = place / "volumes" / volume["source"]
        if not source.exists():
            source.mkdir(parents=True)
            if (given := docker_file.inside(image, volume["target"])).exists():
                os.chown(source, given.stat().st_uid, given.stat().st_gid)
                source.chmod(given.stat().st_mode & 0o7777)
        yield source, volume["target"], "ro" if volume.get("read_only") else "rw"


def _in_memory(source: Path) -> None:
    source.mkdir(parents=True, exist_ok=True)
    source.chmod(0o1777)


def popen_in(network: Network, command: Sequence[str]) -> subprocess.Popen[str]:
    """A program of this machine, such as a browser, in the containers' network: what a published port is."""
    kill = die_with_parent(signal.SIGKILL)
    return subprocess.Popen([*network.enter, *command], stdout=subprocess.PIPE, text=True, preexec_fn=kill)


class Stack:
    """`docker compose up` on a machine that has no image of ours yet."""

    def __init__(self, place: Path, stages: Mapping[str, Image], network: Network, **variables: str) -> None:
        self.network = network
        self.images: dict[str, Image] = {}
        self.containers: dict[str, Container] = {}
        self._place = place
        self._stages = stages
        self._variables = variables
        self._services = compose_file.services(variables)

    @property
    def database(self) -> Database:
        database = self.containers["postgres"]
        assert isinstance(database, Database)
        return database

    def up(self, *names: str) -> None:
        """All of it, or the named services, with what they depend on."""
        for name in self.create(*names):
            container = self.containers[name]
            if container.is_running:
                continue
            container.start()
            if "healthcheck" in container.service:
                container.wait_until_healthy()
            else:
                assert container.process.wait(WAIT_SECONDS) == 0, container.log.read_text()

    def create(self, *names: str) -> list[str]:
        """Builds the missing images of these services, and creates their containers."""
        order = list(compose_file.start_order(self._services, names))
        for service in (self._services[name] for name in order):
            if "build" in service and service["image"] not in self.images:
                self.images[service["image"]] = self._stages[service["build"].get("target", "")]
        for name in order:
            service, kind = self._services[name], Database if name == "postgres" else Container
            assert service["pull_policy"] == "never", "there is no registry here"
            assert service["image"] in self.images, f"{name}: No such image: {service['image']}"
            image = self.images[service["image"]]
            if name not in self.containers:
                self.containers[name] = kind(name, service, image, self.network, self._place, **self._variables)
        return order

    def down(self) -> None:
        for container in self.containers.values():
            container.kill()

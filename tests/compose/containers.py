"""Containers of docker-compose.yml as processes: the same commands, environment, checks and users."""

import os
import pwd
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from cli import postgres_binaries
from cli.processes import die_with_parent
from tests.compose import compose_file
from tests.compose.docker_file import Image
from tests.compose.namespaces import PATH, BaseImage, Network

READY_SECONDS = 30
DEFAULT_GRACE = "10s"


class Container:
    def __init__(self, service: Mapping[str, Any], log: Path) -> None:
        self.service = service
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process, "it was not started"
        return self._process

    @property
    def grace(self) -> int:
        return compose_file.seconds(self.service.get("stop_grace_period", DEFAULT_GRACE))

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = self._popen(self._command, log)

    def execute(self, command: Sequence[str]) -> tuple[int, str]:
        """As `docker compose exec`: the exit status and what it wrote."""
        process = self._popen(command, subprocess.PIPE)
        output, _ = process.communicate(timeout=READY_SECONDS)
        return process.returncode, output.decode()

    def wait_until_healthy(self) -> None:
        kind, *check = self.service["healthcheck"]["test"]
        assert kind == "CMD"
        deadline = time.monotonic() + READY_SECONDS
        while (answer := self.execute(check))[0] != 0:
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, answer[1] + self.log.read_text()[-3000:]

    def stop(self, request: signal.Signals = signal.SIGTERM) -> int:
        """The exit status; raises where an engine would kill it, at the end of the grace time."""
        self.process.send_signal(request)
        return self.process.wait(self.grace)

    def kill(self) -> None:
        if self._process and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def _command(self) -> list[str]:
        raise NotImplementedError

    def _popen(self, command: Sequence[str], output: int | IO[bytes]) -> subprocess.Popen[bytes]:
        raise NotImplementedError


class Service(Container):
    """One of ours."""

    def __init__(
        self, service: Mapping[str, Any], image: Image, base: BaseImage, network: Network, log: Path, **variables: str
    ) -> None:
        super().__init__(service, log)
        given = compose_file.environment(service, variables)
        self._environment = {**image.environment, "HOME": "/", **given, "hosts": str(network.hosts)}
        self._enter = base.enter(image.root, network, image.user, image.directory)
        self._image = image

    @property
    def _command(self) -> list[str]:
        return [*self._image.entrypoint, *self.service.get("command", self._image.command)]

    def _popen(self, command: Sequence[str], output: int | IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self._enter, *command], env=self._environment, stdout=output, stderr=subprocess.STDOUT
        )


class Database(Container):
    """PostgreSQL's own program, for its image cannot be had without an engine."""

    def __init__(self, service: Mapping[str, Any], network: Network, place: Path) -> None:
        super().__init__(service, place / "postgres.log")
        account = pwd.getpwnam("nobody")
        self.user = service["environment"]["POSTGRES_USER"]
        self._binaries = postgres_binaries.find(account).directory
        self._become = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self._network = network
        self._data = place / "postgres"
        self._data.mkdir(mode=0o700)
        os.chown(self._data, account.pw_uid, account.pw_gid)
        auth = service["environment"]["POSTGRES_HOST_AUTH_METHOD"]
        options = [f"--username={self.user}", f"--auth={auth}", "--encoding=UTF8", "--no-locale", "--no-sync"]
        self._run(["initdb", f"--pgdata={self._data}", *options])
        self._run(["postgres", "--single", "-D", str(self._data), "postgres"], f"CREATE DATABASE {self.user}\n")

    @property
    def url(self) -> str:
        """From outside of the network, where only the socket is."""
        return f"postgresql://{self.user}@/{self.user}?host={self._data}"

    @property
    def _command(self) -> list[str]:
        # As the image's command does, but for the socket, which it has in a file system of its own.
        return [
            "postgres",
            "-D",
            str(self._data),
            "-c",
            "listen_addresses=*",
            "-c",
            f"unix_socket_directories={self._data}",
        ]

    def _popen(self, command: Sequence[str], output: int | IO[bytes]) -> subprocess.Popen[bytes]:
        become = ["setpriv", f"--reuid={self._become['user']}", f"--regid={self._become['group']}", "--clear-groups"]
        whole = [*self._network.enter, *become, "--pdeathsig=INT", *command]
        environment = {"PATH": f"{self._binaries}:{PATH}", "TZ": "UTC"}
        return subprocess.Popen(whole, env=environment, cwd="/", stdout=output, stderr=subprocess.STDOUT)

    def _run(self, command: Sequence[str], text: str = "") -> None:
        program = self._binaries / command[0]
        done = subprocess.run(
            [program, *command[1:]], input=text, capture_output=True, text=True, cwd="/", check=False, **self._become
        )
        assert done.returncode == 0, done.stderr


def popen_in(network: Network, command: Sequence[str]) -> subprocess.Popen[str]:
    """A program of this machine, such as a browser, in the containers' network: what a published port is."""
    kill = die_with_parent(signal.SIGKILL)
    return subprocess.Popen([*network.enter, *command], stdout=subprocess.PIPE, text=True, preexec_fn=kill)


class Stack:
    """`docker compose up`."""

    def __init__(self, place: Path, image: Image, base: BaseImage, network: Network, **variables: str) -> None:
        services = compose_file.services(variables)
        self.network = network
        self.database = Database(services["postgres"], network, place)
        self.containers: dict[str, Container] = {"postgres": self.database}
        for name, service in services.items():
            if name != "postgres":
                log = place / f"{name}.log"
                self.containers[name] = Service(service, image, base, network, log, **variables)

    def up(self) -> None:
        services = {name: container.service for name, container in self.containers.items()}
        for name in compose_file.start_order(services):
            container = self.containers[name]
            container.start()
            if "healthcheck" in container.service:
                container.wait_until_healthy()
            else:
                assert container.process.wait(READY_SECONDS) == 0, container.log.read_text()

    def down(self) -> None:
        for container in self.containers.values():
            container.kill()

"""What a container engine has from Linux: a root file system, a network and a user of a process's own."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cli.database import postgres_binaries
from cli.processes.children import die_with_parent

PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
POSTGRES = "999:999"  # the account of the official image

# Arguments: root, then the command. `hostname` is the container's name; `base` has lines of what the base image brings,
# which is read-only: source, target.
_MOUNT = """
root=$1
shift
hostname "$hostname"
unset hostname
mount --bind "$root" "$root"
for place in dev proc; do
    mount --rbind "/$place" "$root/$place"
done
echo "$base" | while read -r source target; do
    mount --rbind "$source" "$root$target"
    mount -o remount,bind,ro "$root$target"
done
unset base
"""
_BUILD = f"""{_MOUNT}
mount --rbind /run "$root/run"
mount -o remount,bind,ro "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mkdir -p "$HOME/.cache/pip" "$root$HOME/.cache/pip"
mount --bind "$HOME/.cache/pip" "$root$HOME/.cache/pip"
exec chroot "$root" "$@"
"""
# `volumes` has lines of what else there is: source, target, ro or rw.
_RUN = f"""{_MOUNT}
mount -t tmpfs tmpfs "$root/run"
echo "$volumes" | while read -r source target mode; do
    mkdir -p "$root$target"
    mount --bind "$source" "$root$target"
    [ "$mode" = rw ] || mount -o remount,bind,ro "$root$target"
done
mount --bind "$hosts" "$root/etc/hosts"
mount -o remount,bind,ro "$root"
unset hosts volumes
exec chroot "$root" "$@"
"""
# Holds a network with nothing but loopback until its input ends.
_HOLD = """
import fcntl, socket, struct, sys
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
fcntl.ioctl(socket.socket(), SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
print("up", flush=True)
sys.stdin.read()
"""


def possible() -> bool:
    """Whether this machine lets us make namespaces and become another user."""
    command = ["unshare", "--mount", "--net", "--uts", "true"]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0


class Network:
    """Of its own: the containers' ports are free here, and each name leads to its one loopback device."""

    def __init__(self, place: Path, names: Sequence[str]) -> None:
        self.hosts = place / "hosts"
        self.hosts.write_text(f"127.0.0.1 localhost {' '.join(names)}\n")
        self._holder = subprocess.Popen(
            ["unshare", "--net", sys.executable, "-c", _HOLD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )
        assert self._holder.stdout
        assert self._holder.stdout.readline() == b"up\n"

    @property
    def enter(self) -> list[str]:
        return ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net"]

    def close(self) -> None:
        self._holder.communicate()


@dataclass(frozen=True)
class BaseImage:
    """This machine's /usr and /etc, and what else of it is in its place or in another one: source and target."""

    more: Sequence[tuple[Path, Path]]
    environment: Mapping[str, str] = field(default_factory=lambda: {"PATH": PATH})

    def prepare(self, root: Path) -> None:
        """A root to mount it on."""
        for name in ("usr", "etc", "run", "dev", "proc", "tmp"):
            (root / name).mkdir(parents=True, exist_ok=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            if Path("/", name).is_symlink():
                (root / name).symlink_to(os.readlink(f"/{name}"))
        for source, target in self.more:
            if source.is_dir() and not target.is_relative_to("/usr"):
                _inside(root, target).mkdir(parents=True, exist_ok=True)

    def build(self, root: Path, command: str, directory: str, environment: Mapping[str, str]) -> None:
        """Run a command of the Dockerfile as root, with this machine's network."""
        whole = [*_mounted(_BUILD, root), "env", f"--chdir={directory}", "sh", "-c", command]
        variables = {**environment, "base": self._lines, "hostname": "build"}
        done = subprocess.run(whole, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"

    def enter(self, root: Path, network: Network, user: str, directory: str) -> list[str]:
        """What comes before a command; `variables` tell it the rest."""
        uid, _, gid = user.partition(":")
        drop = [
            "setpriv",
            f"--reuid={uid}",
            f"--regid={gid}",
            "--clear-groups",
            "--no-new-privs",
            "--bounding-set=-all",
        ]
        return [*network.enter, *_mounted(_RUN, root), *drop, "--pdeathsig=KILL", "env", f"--chdir={directory}"]

    def variables(self, network: Network, hostname: str, volumes: Sequence[tuple[Path, str, str]]) -> dict[str, str]:
        lines = "\n".join(f"{source} {target} {mode}" for source, target, mode in volumes)
        return {"base": self._lines, "hostname": hostname, "hosts": str(network.hosts), "volumes": lines}

    @property
    def _lines(self) -> str:
        everywhere = ((Path(place), Path(place)) for place in ("/usr", "/etc"))
        return "\n".join(f"{source} {target}" for source, target in (*everywhere, *self.more))


def python_image(place: Path) -> BaseImage:
    """With `python`, which has pip, in /usr/local."""
    local = place / "python"
    prefix = Path(sys.base_prefix)
    python = prefix / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    subprocess.run([python, "-m", "venv", local], check=True, capture_output=True)
    return BaseImage([(prefix, prefix)] + ([] if prefix == Path("/usr/local") else [(local, Path("/usr/local"))]))


class PostgresImage(BaseImage):
    """With PostgreSQL's programs, and its account and places as in the official image."""

    def prepare(self, root: Path) -> None:
        super().prepare(root)
        uid, _, gid = POSTGRES.partition(":")
        data = root / "var/lib/postgresql"
        data.mkdir(parents=True)
        os.chown(data, int(uid), int(gid))
        (root / "var/run").symlink_to("../run")


def postgres_image(place: Path) -> PostgresImage:
    binaries = postgres_binaries.find(for_others=True)
    accounts = place / "passwd"
    accounts.write_text(f"postgres:x:{POSTGRES}::/var/lib/postgresql:/bin/sh\n" + Path("/etc/passwd").read_text())
    wheel = binaries.directory.parents[2]  # its libraries lie beside it
    inside = Path("/opt/postgresql")  # its own place may be in /tmp, over which a container has one of its own
    programs = inside / binaries.directory.relative_to(wheel)
    environment = {"PATH": f"{programs}:{PATH}", "PGDATA": f"/var/lib/postgresql/{binaries.major}/docker"}
    return PostgresImage([(wheel, inside), (accounts, Path("/etc/passwd"))], environment)


def _inside(root: Path, path: Path) -> Path:
    return root / path.relative_to("/")


def _mounted(script: str, root: Path) -> list[str]:
    return ["unshare", "--mount", "--uts", "sh", "-euc", script, "sh", str(root)]

"""What a container engine has from Linux: a root file system, a network and a user of a process's own."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.processes import die_with_parent

PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"

# Arguments: root, base, prefix, then the command. What belongs to the base image is read-only.
_MOUNT = """
root=$1 base=$2 prefix=$3
shift 3
mount --bind "$root" "$root"
for place in usr etc run; do
    mount --rbind "/$place" "$root/$place"
    mount -o remount,bind,ro "$root/$place"
done
for place in dev proc; do
    mount --rbind "/$place" "$root/$place"
done
mount --bind "$prefix" "$root$prefix"
[ "$prefix" = /usr/local ] || mount --bind "$base" "$root/usr/local"
mount -t tmpfs tmpfs "$root/tmp"
"""
_BUILD = f"""{_MOUNT}
mkdir -p "$HOME/.cache/pip" "$root$HOME/.cache/pip"
mount --bind "$HOME/.cache/pip" "$root$HOME/.cache/pip"
exec chroot "$root" "$@"
"""
_RUN = f"""{_MOUNT}
mount --bind "$hosts" "$root/etc/hosts"
mount -o remount,bind,ro "$root"
unset hosts
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
    command = ["unshare", "--mount", "--net", "true"]
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
    """This machine's /usr and /etc, with `python`, which has pip, in /usr/local."""

    local: Path

    @classmethod
    def make(cls, local: Path) -> "BaseImage":
        python = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
        subprocess.run([python, "-m", "venv", local], check=True, capture_output=True)
        return cls(local)

    def prepare(self, root: Path) -> None:
        """A root to mount it on."""
        for name in ("usr", "etc", "run", "dev", "proc", "tmp", sys.base_prefix.lstrip("/")):
            (root / name).mkdir(parents=True, exist_ok=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            if Path("/", name).is_symlink():
                (root / name).symlink_to(os.readlink(f"/{name}"))

    def build(self, root: Path, command: str, directory: str, environment: Mapping[str, str]) -> None:
        """Run a command of the Dockerfile as root, with this machine's network."""
        whole = [*self._mounted(_BUILD, root), "env", f"--chdir={directory}", "sh", "-c", command]
        done = subprocess.run(whole, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"

    def enter(self, root: Path, network: Network, user: str, directory: str) -> list[str]:
        """What comes before a command; `hosts` in its environment is the file of names."""
        uid, _, gid = user.partition(":")
        drop = [
            "setpriv",
            f"--reuid={uid}",
            f"--regid={gid}",
            "--clear-groups",
            "--no-new-privs",
            "--bounding-set=-all",
        ]
        return [*network.enter, *self._mounted(_RUN, root), *drop, "--pdeathsig=KILL", "env", f"--chdir={directory}"]

    def _mounted(self, script: str, root: Path) -> list[str]:
        return ["unshare", "--mount", "sh", "-euc", script, "sh", str(root), str(self.local), sys.base_prefix]

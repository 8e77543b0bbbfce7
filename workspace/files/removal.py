"""Removing a directory with all that is in it, however deep that is and whatever modes it has."""

import os
import secrets
from contextlib import suppress

from workspace.files import walking


def remove(at: int, name: str) -> None:
    """What is nested is moved up first, so that depth costs neither memory nor descriptors."""
    waiting = [name]
    while waiting:
        current = waiting.pop()
        with walking.entered(at, current, needed=walking.CHANGING) as descriptor, os.scandir(descriptor) as found:
            for entry in found:
                if walking.is_directory(entry):
                    waiting.append(_moved_up(descriptor, entry.name, at))
                else:
                    os.unlink(entry.name, dir_fd=descriptor)
        with suppress(FileNotFoundError):
            os.rmdir(current, dir_fd=at)


def _moved_up(descriptor: int, name: str, at: int) -> str:
    fresh = secrets.token_hex(16)
    walking.give_rights(descriptor, name)  # moving a directory needs the right to write in it
    os.rename(name, fresh, src_dir_fd=descriptor, dst_dir_fd=at)
    return fresh

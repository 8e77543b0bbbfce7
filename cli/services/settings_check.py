"""Checks the settings of all services in a process of its own, while something else is done."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Self

from cli.data_dir import CHECKOUT
from cli.errors import CliError
from cli.services import env_file


class SettingsCheck:
    def __init__(self, services: Sequence[str], settings: Mapping[str, str], problems: Sequence[str] = ()) -> None:
        """`problems` were found before, and are raised with those of the services."""
        self._problems = problems
        self._process = subprocess.Popen(
            [sys.executable, "-m", "common.check", *services],
            cwd=CHECKOUT,
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for this process, which ends it
        )
        self._is_finished = False

    def finish(self) -> None:
        """Raises `SettingsError` with everything that is wrong; does nothing the second time."""
        if self._is_finished:
            return
        self._is_finished = True
        found, errors = self._process.communicate()
        if problems := [*self._problems, *found.splitlines()]:
            raise env_file.create_error(env_file.add_origins(problems))
        if self._process.returncode:
            raise CliError(f"The settings could not be checked:\n{errors.strip()}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_finished:
            self._process.kill()
            self._process.communicate()

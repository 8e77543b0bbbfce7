import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from cli.database import postgres
from cli.errors import CliError
from cli.processes.ownership import InUseError


@contextlib.contextmanager
def reached(environment: Mapping[str, str], directory: Path, *, create: bool = False) -> Iterator[dict[str, str]]:
    """The environment with the owner's address: its own, else of the cluster in `directory`, started unless it runs."""
    with contextlib.ExitStack() as stack:
        variables = dict(environment)
        if not variables.keys() & {"DATABASE_URL", "MIGRATION_DATABASE_URL"}:
            if not create and not postgres.exists(directory):
                raise CliError(
                    f"There is no database in {directory} yet. Create one with ./todo up, or set DATABASE_URL."
                )
            with contextlib.suppress(InUseError):  # `up` runs there: work on what it runs
                stack.enter_context(postgres.Cluster.start(directory))
            variables |= postgres.dump_settings(directory)
            variables["MIGRATION_DATABASE_URL"] = postgres.url(directory, postgres.OWNER)
        yield variables

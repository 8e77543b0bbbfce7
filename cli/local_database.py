import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from cli import postgres
from cli.errors import CliError
from cli.ownership import InUseError


@contextlib.contextmanager
def reached(environment: Mapping[str, str], directory: Path, *, create: bool = False) -> Iterator[dict[str, str]]:
    """The environment with a DATABASE_URL: its own, else that of the cluster in `directory`, started unless it runs."""
    with contextlib.ExitStack() as stack:
        variables = dict(environment)
        if "DATABASE_URL" not in variables:
            if not create and not postgres.exists(directory):
                raise CliError(f"There is no database in {directory} yet: ./todo up makes one, or set DATABASE_URL.")
            try:
                variables["DATABASE_URL"] = stack.enter_context(postgres.Cluster.start(directory)).url
            except InUseError:  # `up` runs there: work on what it runs
                variables["DATABASE_URL"] = postgres.url(directory)
        yield variables

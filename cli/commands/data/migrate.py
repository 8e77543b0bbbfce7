from pathlib import Path

from cli.database import local_database
from cli.services import environment, service_command


def run(directory: Path) -> int:
    """`python -m migrations` for the database of the environment, else for the cluster in `directory`."""
    with local_database.reached(environment.load(), directory, create=True) as variables:
        return service_command.run("migrations", variables=variables)

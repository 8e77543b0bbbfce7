import argparse

from cli.arguments import Commands, add_command
from cli.services import environment, service_command


def add(commands: Commands) -> None:
    add_command(
        commands,
        "migrate",
        run,
        "update the database schema",
        "Updates the schema of the database at MIGRATION_DATABASE_URL, else DATABASE_URL, else of the one in the data "
        "directory.",
    )


def run(arguments: argparse.Namespace) -> int:
    from cli.database import local_database

    with local_database.reached(environment.load(), arguments.data_dir, create=True) as variables:
        return service_command.run("migrations", variables=variables)

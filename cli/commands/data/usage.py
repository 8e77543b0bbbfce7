import argparse

from cli.arguments import Commands, add_command, user
from cli.services import environment, service_command
from common.commands import parse_days


def add(commands: Commands) -> None:
    parser = add_command(
        commands,
        "usage",
        run,
        "show what the model was used for, by day, user and model",
        "Prints answers, requests to the model and tokens by day (UTC), user and model.",
    )
    parser.add_argument("--days", type=parse_days, default=30, help="how many days, including today (%(default)s)")
    parser.add_argument("--user", type=user, metavar="NAME", help="only this user")
    parser.add_argument("--json", action="store_true", help="print a JSON array instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """Prints what `python -m backend usage` finds."""
    from cli.database import local_database

    options = [f"--days={arguments.days}"]
    options += [f"--user={arguments.user}"] if arguments.user is not None else []
    options += ["--json"] if arguments.json else []
    with local_database.reached(environment.load(), arguments.data_dir) as variables:
        return service_command.run("backend", "usage", *options, variables=variables)

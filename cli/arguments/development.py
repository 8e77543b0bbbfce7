"""How good and how fast this code is."""

import argparse
from pathlib import Path

from cli.arguments import values
from cli.arguments.command import Commands, add


def add_all(commands: Commands) -> None:
    bench = add(
        commands,
        "bench",
        "measure how fast it is",
        "Runs everything on a throwaway PostgreSQL and an instant model, beside what it is made of.",
    )
    bench.add_argument("--full", action="store_true", help="longer, for figures that vary less")
    bench.add_argument("--against", type=Path, metavar="DIR", help="beside another checkout instead, in turns")
    bench.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    bench.add_argument("--load", action="store_true", help="what it carries instead, and what becomes of more")
    seconds = "with --load, how long each load lasts (300)"
    bench.add_argument("--seconds", type=values.amount, metavar="N", help=seconds)
    soak = "half of that for long: whether anything grows"
    bench.add_argument("--soak", type=values.amount, metavar="MINUTES", help=soak)
    _add_shown(bench)
    _add_eval(commands)
    add(
        commands,
        "audit",
        "look the locked packages up in the lists of known vulnerabilities",
        "Looks the packages of the requirements locks for this platform up in a public list of known vulnerabilities, "
        "and those of the tests' npm locks where npm is there. Needs the internet.",
    )
    test = add(
        commands,
        "test",
        "check the code and run the tests",
        "Checks the code and runs the tests on a throwaway PostgreSQL, or in databases of their own on the server of "
        "DATABASE_URL. Further arguments are pytest's.",
        usage="todo test [-h] [--all] [pytest arguments]",
    )
    test.add_argument("--all", action="store_true", help="also pyright and the tests that take long, as CI does")


def check(given: argparse.Namespace) -> str | None:
    """What is wrong with what was asked for, if anything is."""
    if given.command != "bench":
        return None
    if given.seconds is not None and not given.load:
        return "bench --seconds needs --load"
    kinds = [f"--{kind}" for kind in ("load", "soak", "against", "full", "show") if getattr(given, kind)]
    alone = {"--load", "--soak", "--show"} & set(kinds)
    return f"bench takes one of {' and '.join(kinds)}" if alone and len(kinds) > 1 else None


def _add_eval(commands: Commands) -> None:
    evaluation = add(
        commands,
        "eval",
        "see how often the model does the right thing to the list",
        "Says a hundred messages and more to the services on a throwaway PostgreSQL, with the model that is set, and "
        "judges what became of the list. Status 1 when it claimed what it had not done, or obeyed an order that stands "
        "in a task.",
    )
    evaluation.add_argument("--quick", action="store_true", help="thirty cases, once each")
    evaluation.add_argument(
        "--only", action="append", default=[], metavar="TAG", help="cases of this tag or id; may be given again"
    )
    evaluation.add_argument(
        "--repeat", type=values.count, metavar="K", help="how often each case is tried (3, with --quick 1)"
    )
    evaluation.add_argument("--json", type=Path, metavar="FILE", help="write each trial there as it ends")
    evaluation.add_argument("--resume", type=Path, metavar="FILE", help="go on with what --json wrote there")
    allowed = "requests a minute that the provider allows"
    evaluation.add_argument("--limit-rpm", type=values.amount, metavar="N", help=allowed)
    for name, whose in (("in", "reads"), ("out", "writes")):
        priced = f"of a million tokens that it {whose}"
        evaluation.add_argument(f"--price-{name}", type=values.amount, metavar="N", help=priced)
    evaluation.add_argument(
        "--compare", type=Path, nargs=2, metavar=("FILE", "OTHER"), help="run nothing, show two results side by side"
    )
    _add_shown(evaluation)


def _add_shown(command: argparse.ArgumentParser) -> None:
    command.add_argument("--chart", type=Path, metavar="FILE.svg", help="draw what is shown there too")
    command.add_argument("--show", type=Path, metavar="FILE", help="run nothing, show what --json wrote there")

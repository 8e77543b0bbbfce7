import argparse
import sys

from common import commands
from workspace import maintenance


def main() -> None:
    match sys.argv[1:]:
        case [name, *rest] if name in maintenance.COMMANDS:
            commands.run_to_end(maintenance.COMMANDS[name], rest)
        case [name, *_] if not name.startswith("--"):
            commands.exit_unknown_command("workspace", name, [*maintenance.COMMANDS])
        case arguments:
            from workspace import process

            parser = argparse.ArgumentParser(prog="workspace")
            parser.add_argument(
                "--account", type=int, help="the user id to switch to before it serves requests, if root starts it"
            )
            process.main(parser.parse_args(arguments).account)


if __name__ == "__main__":
    main()

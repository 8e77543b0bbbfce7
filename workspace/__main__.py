import argparse
import sys

from common import commands


def main() -> None:
    match sys.argv[1:]:
        case [option, *_] as arguments if option.startswith("--"):
            from workspace import process

            parser = argparse.ArgumentParser(prog="workspace")
            parser.add_argument(
                "--account", type=int, help="the user id to switch to before it serves requests, if root starts it"
            )
            process.main(account=parser.parse_args(arguments).account)
        case arguments:
            commands.run_command("workspace", arguments, package="maintenance")


if __name__ == "__main__":
    main()

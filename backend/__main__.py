import sys

from service import commands


def main() -> None:
    match sys.argv[1:]:
        case [option, *_] as arguments if option.startswith("--"):
            from backend import named

            named.run(arguments)
        case arguments:
            commands.main("backend", arguments)


if __name__ == "__main__":
    main()

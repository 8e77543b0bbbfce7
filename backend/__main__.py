import sys


def main() -> None:
    """The service or a command, each imported only when it runs: most commands need little of what the service does."""
    match sys.argv[1:]:
        case ["export", *arguments]:
            from backend import export_command

            export_command.run(arguments)
        case ["forget", *arguments]:
            from backend import forget_command

            forget_command.run(arguments)
        case ["token", *arguments]:
            from backend import token_command

            token_command.run(arguments)
        case ["usage", *arguments]:
            from backend import usage_command

            usage_command.run(arguments)
        case _:
            from backend import process

            process.main()


if __name__ == "__main__":
    main()

import sys


def main() -> None:
    """The service or a command, each imported only when it runs: most commands need little of what the service does."""
    match sys.argv[1:]:
        case ["export", *arguments]:
            from mcp_server import export_command

            export_command.run(arguments)
        case ["forget", *arguments]:
            from mcp_server import forget_command

            forget_command.run(arguments)
        case _:
            from mcp_server import process

            process.main()


if __name__ == "__main__":
    main()

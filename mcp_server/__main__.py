import sys

from common import commands


def main() -> None:
    commands.run_command("mcp_server", sys.argv[1:])


if __name__ == "__main__":
    main()

import sys

from common import commands


def main() -> None:
    commands.main("mcp_server", sys.argv[1:])


if __name__ == "__main__":
    main()

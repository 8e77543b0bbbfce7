"""How PostgreSQL's own programs are called."""

DUMP = ("--enable-row-security", "--format=custom")
"""Options of pg_dump: its login may be the tables' owner, who is subject to row-level security."""


def get_owner_address(url: str) -> tuple[str, dict[str, str]]:
    """Returns an address with which the tables' owner sees all users' rows, and the variable that has its password.

    The password is not in the address, because everybody on the machine can read the arguments of programs.
    """
    from psycopg.conninfo import conninfo_to_dict, make_conninfo  # `./todo` may run without packages

    password = conninfo_to_dict(url).get("password")
    address = make_conninfo(url, password=None, options="-c todo.all_people=on")
    return address, {"PGPASSWORD": str(password)} if password else {}

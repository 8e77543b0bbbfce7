"""Being somebody who has nothing, where root starts the workspace."""

import os

from service.environment import stop_misconfigured


def check(account: int | None) -> None:
    """End the process where it would serve as root, or cannot become the account."""
    root = os.geteuid() == 0
    if root and not account:
        stop_misconfigured(
            "The workspace does not run as root, whom no limit binds: start it as another user, or with --account=UID "
            "of one that has nothing."
        )
    if account and not root:
        stop_misconfigured("Only root can become another account: leave --account out.")


def become(account: int) -> None:
    """For good, with all threads, and without groups."""
    os.setgroups([])
    os.setgid(account)
    os.setuid(account)

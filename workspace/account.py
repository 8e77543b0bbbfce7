"""Switches the process, if root starts it, to an account that owns nothing."""

import ctypes
import os
import sys

from common.environment import stop_misconfigured

_PR_SET_PDEATHSIG, _PR_GET_PDEATHSIG = 1, 2


def check_account(account: int | None) -> None:
    root = os.geteuid() == 0
    if root and not account:
        stop_misconfigured(
            "The workspace does not run as root, because limits do not apply to root. Start it as another user, or "
            "with --account=UID of a user that owns no files."
        )
    if account and not root:
        stop_misconfigured("Only root can switch to another account. Start it without --account.")


def switch_account(account: int) -> None:
    """Switches all threads for good and drops all groups."""
    signal = ctypes.c_int()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_GET_PDEATHSIG, ctypes.byref(signal))
    os.setgroups([])
    os.setgid(account)
    os.setuid(account)
    if signal.value:  # Linux forgets it when the user changes
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal)

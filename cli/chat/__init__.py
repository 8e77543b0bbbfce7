"""`./todo chat`: the assistant's conversations in a terminal, over HTTP. The prompt comes before slow imports."""

from typing import Literal

NEWEST = ""
"""In place of a conversation's id: the one that was used last."""
Exit = Literal[0, 1, 2, 3, 130]
DONE, FAILED, NO_SERVER, ASKS, STOPPED = 0, 1, 2, 3, 130

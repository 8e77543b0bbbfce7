"""How many follow runs at once in this process: so many of each person, as each of them looks at the database."""

from collections import Counter

from backend.errors import LimitReached


class Places:
    def __init__(self, most: int) -> None:
        """`most` is how many readers one person may have."""
        self._most = most
        self._taken: Counter[str] = Counter()

    def take(self, user_id: str) -> "Place":
        """Raises `LimitReached` where the person has all of theirs."""
        if self._taken[user_id] >= self._most:
            raise LimitReached(f"You can follow {self._most} answers at once. Close one of them and try again.")
        self._taken[user_id] += 1
        return Place(self._taken, user_id)


class Place:
    """Of one reader, until they leave it or nobody holds it: an answer may be given up before it is read."""

    def __init__(self, taken: Counter[str], user_id: str) -> None:
        self._taken: Counter[str] | None = taken
        self.user_id = user_id

    def leave(self) -> None:
        taken, self._taken = self._taken, None
        if taken is None:
            return
        taken[self.user_id] -= 1
        if not taken[self.user_id]:
            del taken[self.user_id]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.leave()

    __del__ = leave

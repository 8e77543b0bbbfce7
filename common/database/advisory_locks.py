"""The advisory locks of all services, in one place so that their numbers differ.

These belong to one user (`%(user)s`) and end with their transaction. Besides them each process holds its process id as
a shared session lock (`backend/liveness.py`), and a migration holds the lock in `migrations/env.py`. The SQL function
`count_sign_in` holds one with the number 2 for each name with which somebody signs in.
"""

# Held to start a run and to count a user's requests, also in the SQL function `count_request`.
REQUESTS = "pg_advisory_xact_lock(hashtextextended(%(user)s, 0))"
# The first lock of a transaction that changes tasks, so that the changes of a user are made one at a time. Simultaneous
# calls cannot exceed a limit together, undo what another changes, or add a line of a file twice; and the rows of the
# log are committed in the order of their ids, so that a reader of one row has missed none before it.
TASKS = "pg_advisory_xact_lock(hashtextextended(%(user)s, 1))"

"""The advisory locks of all services, in one place so that their numbers differ.

These belong to one user (`%(user)s`) and end with their transaction. Besides them each process holds its process id as
a shared session lock (`process.py`), and a migration holds the lock in `migrations/env.py`.
"""

# Held to start a run and to count a user's requests, also in the SQL function `count_request`.
REQUESTS = "pg_advisory_xact_lock(hashtextextended(%(user)s, 0))"
# With limits, a user's tasks are changed one call at a time, or simultaneous calls could exceed a limit together.
QUOTA = "pg_advisory_xact_lock(hashtextextended(%(user)s, 1))"
# A deleted task has no row to lock, and the user's row is locked after the tasks when a repeat is completed.
UNDO = "pg_advisory_xact_lock(hashtextextended(%(user)s, 2))"
# One import of a user at a time, so that the second finds what the first has added.
IMPORT = "pg_advisory_xact_lock(hashtextextended(%(user)s, 3))"
# A user's rows of the log are committed in the order of their ids, so that a reader of one row has missed none before
# it. The lock is taken with the first row, and is the last lock that a transaction waits for.
TASK_LOG = "pg_advisory_xact_lock(hashtextextended(%(user)s, 4))"

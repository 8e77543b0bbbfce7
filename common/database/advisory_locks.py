"""The advisory locks of all services: each is one number, so none is taken for another.

Those below are of one user (`%(user)s`) and end with their transaction. Besides them each process holds its process id
as a shared session lock (`process.py`), and a migration holds `migrations/env.py`'s.
"""

# The lock that starts a run and counts a user's requests, also in the function `count_request`.
REQUESTS = "pg_advisory_xact_lock(hashtextextended(%(user)s, 0))"
# Near a limit one change at a time, or calls at the same time would all see the last free place.
QUOTA = "pg_advisory_xact_lock(hashtextextended(%(user)s, 1))"
# A task that was deleted has no row to lock; the user's row is locked after the tasks' by who completes a repeat.
UNDO = "pg_advisory_xact_lock(hashtextextended(%(user)s, 2))"
# One import of a user at a time: what one has added, the other finds.
IMPORT = "pg_advisory_xact_lock(hashtextextended(%(user)s, 3))"
# No change of the log is stored before all transactions of the user that have stored some have ended: a user's changes
# are committed in the order of their ids, so that who has read one has missed none before it. It is taken as the first
# row is made, and is the last lock that a transaction waits for.
TASK_LOG = "pg_advisory_xact_lock(hashtextextended(%(user)s, 4))"

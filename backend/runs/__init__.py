"""A run from its message to its outcome: executed in one process, recorded in rows, followed from any process."""

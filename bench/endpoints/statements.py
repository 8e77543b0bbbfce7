"""What adding a task is in SQL; the names after colons are variables for pgbench."""

SNAPSHOT = (
    "jsonb_build_object('id', id, 'title', title, 'description', description, 'status', status, "
    "'created_at', created_at, 'updated_at', updated_at, 'completed_at', completed_at)"
)
ADD = f"""
WITH claim AS (
    INSERT INTO task_calls (user_id, operation, arguments, actor, idempotency_key)
    VALUES (:owner, 'add', :arguments, 'bench', NULL)
    ON CONFLICT (user_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING RETURNING id
), number AS (
    INSERT INTO people (user_id, last_task_id) SELECT :owner, 1 FROM claim
    ON CONFLICT (user_id) DO UPDATE SET last_task_id = people.last_task_id + 1 RETURNING last_task_id
), made AS (
    INSERT INTO tasks (user_id, id, title, description) SELECT :owner, last_task_id, :title, :description FROM number
    RETURNING id AS task_id, CAST(NULL AS jsonb) AS before, {SNAPSHOT} AS after
)
INSERT INTO task_changes (user_id, call_id, task_id, before, after)
SELECT :owner, (SELECT id FROM claim), task_id, before, after FROM made
RETURNING before, after
"""  # noqa: S608 - no value of anybody's is in it

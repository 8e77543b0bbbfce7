"""Tasks written past the service, with the numbers it would have given them."""

ADD_TASK = """
    WITH given AS (SELECT %s::text AS user_id, %s::text AS title, %s::text AS description),
    number AS (
        INSERT INTO people (user_id, last_task_id) SELECT user_id, 1 FROM given
        ON CONFLICT (user_id) DO UPDATE SET last_task_id = people.last_task_id + 1 RETURNING last_task_id
    )
    INSERT INTO tasks (user_id, id, title, description)
    SELECT user_id, last_task_id, title, description FROM given, number
"""
"""Of a person, with a title and a description."""

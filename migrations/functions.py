"""The functions of the database, in SQL."""

# Functions of a transaction: each lets it fail with an SQLSTATE of its own, so that nothing is read before its end.
OF_TRANSACTIONS = """
-- Holds the lease of a tree of runs to the end of the transaction.
CREATE FUNCTION hold_run(run text, process bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM runs WHERE user_id = current_setting('todo.user_id') AND id = run
        AND status = 'running' AND process_id = process FOR NO KEY UPDATE;
    IF NOT FOUND THEN RAISE EXCEPTION 'lease lost' USING ERRCODE = 'TD001'; END IF;
END $$;

-- A run was started in this transaction, unless its conversation does not exist or has another one.
CREATE FUNCTION require_started(conversation text, run text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    me text := current_setting('todo.user_id');
BEGIN
    IF EXISTS (SELECT FROM runs WHERE user_id = me AND id = run) THEN RETURN; END IF;
    IF EXISTS (SELECT FROM conversations WHERE user_id = me AND id = conversation) THEN
        RAISE EXCEPTION 'busy' USING ERRCODE = 'TD003';
    END IF;
    RAISE EXCEPTION 'not found' USING ERRCODE = 'TD004';
END $$;

-- Counts a message or command of the user, and the run and conversation that this transaction has made for it.
CREATE FUNCTION count_request(
    request text, per_minute integer, running integer, per_day integer, conversations integer, tokens_per_day bigint,
    is_new boolean
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    me text := current_setting('todo.user_id');
    counted bigint;
    seconds integer := 0;
    reached text;
    most bigint;
BEGIN
    -- One transaction at a time for each user, or two would both see the last free place.
    PERFORM pg_advisory_xact_lock(hashtextextended(me, 0));
    DELETE FROM requests WHERE user_id = me AND created_at < now() - interval '1 day';
    IF running IS NOT NULL THEN
        SELECT count(*) INTO counted FROM runs
        WHERE user_id = me AND status = 'running' AND parent_call_id IS NULL;
        IF counted > running THEN reached := 'running'; most := running; END IF;
    END IF;
    IF reached IS NULL AND per_minute IS NOT NULL THEN
        SELECT count(*), ceil(60 - extract(epoch FROM now() - min(created_at))) INTO counted, seconds
        FROM requests WHERE user_id = me AND created_at > now() - interval '1 minute';
        IF counted >= per_minute THEN reached := 'per_minute'; most := per_minute; END IF;
    END IF;
    IF reached IS NULL AND per_day IS NOT NULL THEN
        SELECT count(*) INTO counted FROM requests WHERE user_id = me;
        IF counted >= per_day THEN reached := 'per_day'; most := per_day; END IF;
    END IF;
    IF reached IS NULL AND tokens_per_day IS NOT NULL THEN
        SELECT input_tokens + output_tokens,
            ceil(extract(epoch FROM day + 1 - (now() AT TIME ZONE 'UTC'))) INTO counted, seconds
        FROM token_usage WHERE user_id = me AND day = (now() AT TIME ZONE 'UTC')::date;
        IF counted >= tokens_per_day THEN reached := 'tokens_per_day'; most := tokens_per_day; END IF;
    END IF;
    IF reached IS NULL AND conversations IS NOT NULL AND is_new THEN
        SELECT count(*) INTO counted FROM conversations WHERE user_id = me;
        IF counted > conversations THEN reached := 'conversations'; most := conversations; END IF;
    END IF;
    IF reached IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'TD002',
            MESSAGE = jsonb_build_object('limit', reached, 'most', most, 'seconds', seconds)::text;
    END IF;
    INSERT INTO requests (user_id, id) VALUES (me, request);
END $$;

-- A run was started in this transaction for a schedule, whose occurrence at the time `due` it is; null for a run that
-- the user wants now. What comes next is stored, unless another process was quicker, or it was paused or deleted.
CREATE FUNCTION take_schedule(
    schedule text, due timestamptz, run text, conversation text, rule text, following_on date, following_at timestamptz
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE schedules SET last_run_id = run, last_state = 'running', conversation_id = conversation,
        skipped_at = NULL, skip_reason = NULL,
        repeat = CASE WHEN due IS NULL THEN repeat ELSE rule END,
        next_on = CASE WHEN due IS NULL THEN next_on ELSE following_on END,
        next_at = CASE WHEN due IS NULL THEN next_at ELSE following_at END, claimed_until = NULL
    WHERE user_id = current_setting('todo.user_id') AND id = schedule
        AND (due IS NULL OR (next_at = due AND NOT paused))
        AND (conversation_id IS NULL OR conversation_id = conversation);
    IF NOT FOUND THEN RAISE EXCEPTION 'schedule taken' USING ERRCODE = 'TD006'; END IF;
END $$;

-- Stores the idempotency key of a request, once. The responses of those without a run may have 10 MB together.
CREATE FUNCTION keep_request(key text, request bytea, run text, most integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    me text := current_setting('todo.user_id');
    counted bigint;
    bytes bigint;
BEGIN
    INSERT INTO kept_requests (user_id, key, request, run_id) VALUES (me, key, request, run)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN RAISE EXCEPTION 'key stored' USING ERRCODE = 'TD005'; END IF;
    SELECT count(*), sum(pg_column_size(stored.answer)) INTO counted, bytes
    FROM (SELECT answer FROM kept_requests WHERE user_id = me LIMIT most + 1) AS stored;
    IF counted > most OR (run IS NULL AND bytes >= 10000000) THEN
        RAISE EXCEPTION USING ERRCODE = 'TD002',
            MESSAGE = jsonb_build_object('limit', 'idempotency_keys', 'most', most, 'seconds', 0)::text;
    END IF;
END $$;
"""
# Functions by which the services work across users: {signature: (returned type, statement)}.
ACROSS_USERS = {
    "running_processes()": ("SETOF bigint", "SELECT DISTINCT process_id FROM runs WHERE status = 'running'"),
    "runs_of_process(process bigint)": (
        "TABLE (user_id text, id text)",
        """
        SELECT r.user_id, r.id FROM runs r
        WHERE r.status = 'running' AND r.process_id = process AND r.parent_call_id IS NULL
        """,
    ),
    "sweep_requests(most integer)": (
        "void",
        """
        DELETE FROM requests WHERE (user_id, id) IN (
            SELECT user_id, id FROM requests WHERE created_at < now() - interval '1 day' LIMIT most
        )
        """,
    ),
    # What is due is claimed for a minute; the transaction that starts its run moves it on.
    "claim_schedules(present timestamptz, most integer)": (
        "TABLE (user_id text, id text)",
        """
        UPDATE schedules AS due SET claimed_until = present + interval '1 minute'
        WHERE (due.user_id, due.id) IN (
            SELECT stored.user_id, stored.id FROM schedules AS stored
            WHERE stored.next_at <= present AND NOT stored.paused
                AND (stored.claimed_until IS NULL OR stored.claimed_until <= present
                    OR stored.claimed_until > present + interval '5 minutes')
            ORDER BY stored.next_at LIMIT most FOR UPDATE SKIP LOCKED
        ) RETURNING due.user_id, due.id
        """,
    ),
    "changed_schedules(most integer)": (
        "TABLE (user_id text, id text)",
        """
        SELECT stored.user_id, stored.id FROM schedules AS stored
        JOIN runs AS run ON (run.user_id, run.id) = (stored.user_id, stored.last_run_id)
        WHERE stored.last_state IN ('running', 'waiting') AND run.status <> stored.last_state LIMIT most
        """,
    ),
    "user_of_calendar(hash bytea)": (
        "TABLE (user_id text)",
        """
        SELECT profiles.user_id FROM profiles WHERE calendar_hash = hash AND NOT EXISTS (
            SELECT FROM accounts
            WHERE accounts.user_id = profiles.user_id AND coalesce(disabled_at, provider_refused_at) IS NOT NULL
        )
        """,
    ),
    # Those since the last look, and of half a minute before it, as a transaction may end later than it began. There is
    # always a row, which says when the look was. With coalesce in place of CASE, the index could not be used, as
    # row-level security takes its value for something that might leak.
    "ended_sessions(since timestamptz)": (
        "TABLE (id text, expires double precision, looked_at timestamptz)",
        """
        SELECT ended.id, extract(epoch FROM ended.expires_at)::double precision, now()
        FROM (SELECT) AS look LEFT JOIN sessions AS ended
        ON ended.ended_at > CASE WHEN since IS NULL THEN '-infinity' ELSE since - interval '30 seconds' END
            AND ended.expires_at > now() - interval '1 hour'
        """,
    ),
    "take_one_time_code(code_hash bytea, code_kind text)": (
        "TABLE (user_id text, details jsonb)",
        """
        DELETE FROM one_time_codes AS code WHERE hash = code_hash AND kind = code_kind AND expires_at > now()
        RETURNING code.user_id, code.details
        """,
    ),
    "sweep_accounts(most integer)": (
        "void",
        """
        DELETE FROM sessions WHERE (user_id, id) IN (
            SELECT user_id, id FROM sessions WHERE expires_at < now() - interval '1 hour' LIMIT most
        );
        DELETE FROM one_time_codes WHERE expires_at < now();
        DELETE FROM account_events WHERE (user_id, id) IN (
            SELECT user_id, id FROM account_events WHERE at < now() - interval '1 year' LIMIT most
        )
        """,
    ),
    # Counts an attempt to sign in for each key, unless one of them has to wait, and returns the seconds of that.
    # Attempts with the same first key are counted one at a time. Four are free; then the delay doubles with each.
    "count_sign_in(keys bytea[], longest integer[])": (
        "TABLE (seconds double precision)",
        """
        SELECT pg_advisory_xact_lock(hashtextextended(encode(keys[1], 'hex'), 2));
        DELETE FROM failed_sign_ins WHERE key IN (
            SELECT old.key FROM failed_sign_ins AS old WHERE old.at < now() - interval '1 day'
            LIMIT 100 FOR UPDATE SKIP LOCKED
        );
        WITH waiting AS MATERIALIZED (
            SELECT max(extract(epoch FROM failed.allowed_at - clock_timestamp()))::double precision AS rest
            FROM failed_sign_ins AS failed WHERE failed.key = ANY (keys) AND failed.allowed_at > clock_timestamp()
        ), counted AS (
            INSERT INTO failed_sign_ins AS failed (key, count, longest_seconds, at, allowed_at)
            SELECT attempt.key, 1, attempt.longest, clock_timestamp(), clock_timestamp()
            FROM unnest(keys, longest) AS attempt (key, longest), waiting WHERE waiting.rest IS NULL
            ON CONFLICT (key) DO UPDATE SET count = failed.count + 1, at = excluded.at,
                allowed_at = excluded.at + make_interval(secs => CASE WHEN failed.count < 4 THEN 0
                    ELSE least(excluded.longest_seconds, power(2, least(failed.count - 4, 20))) END)
        )
        SELECT coalesce(rest, 0) FROM waiting
        """,
    ),
    "reset_sign_ins(keys bytea[])": ("void", "DELETE FROM failed_sign_ins WHERE key = ANY (keys)"),
    # Makes the first account for a one-time code; nobody can add another one at the same time.
    "add_first_account(code_hash bytea, id text, account_name text, new_hash text)": (
        "TABLE (user_id text)",
        """
        LOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE;
        WITH taken AS (
            DELETE FROM one_time_codes AS code WHERE code.hash = code_hash AND code.kind = 'setup'
                AND code.user_id = '' AND code.expires_at > now() AND NOT EXISTS (SELECT FROM accounts)
            RETURNING code.hash
        ), added AS (
            INSERT INTO accounts (user_id, name, password_hash) SELECT id, account_name, new_hash FROM taken
            RETURNING accounts.user_id
        ), logged AS (
            INSERT INTO account_events (user_id, kind, details)
            SELECT added.user_id, 'account_made', '{"by": "setup"}' FROM added
        )
        SELECT added.user_id FROM added
        """,
    ),
    # Ends what was not renewed for twelve hours, deletes the tokens of what has ended, and returns what is to be
    # renewed now, which no other caller gets before `renew_at`.
    "claim_renewals(seconds integer, most integer)": (
        "TABLE (user_id text, session_id text, claimed_until timestamptz)",
        """
        UPDATE sessions SET ended_at = clock_timestamp() WHERE ended_at IS NULL AND (user_id, id) IN (
            SELECT stored.user_id, stored.session_id FROM provider_sessions AS stored
            WHERE renewed_at < now() - interval '12 hours'
        );
        DELETE FROM provider_sessions AS stored WHERE NOT EXISTS (
            SELECT FROM sessions AS session
            WHERE (session.user_id, session.id) = (stored.user_id, stored.session_id)
                AND session.ended_at IS NULL AND session.expires_at > now()
        );
        UPDATE provider_sessions AS due SET renew_at = now() + make_interval(secs => seconds)
        WHERE (due.user_id, due.session_id) IN (
            SELECT stored.user_id, stored.session_id FROM provider_sessions AS stored
            WHERE renew_at <= now() ORDER BY renew_at LIMIT most FOR UPDATE SKIP LOCKED
        ) RETURNING due.user_id, due.session_id, due.renew_at
        """,
    ),
    # Stores the first candidate. Of processes that start at the same time, the others wait for its transaction.
    "vapid_key(candidate bytea)": (
        "TABLE (key bytea)",
        """
        INSERT INTO vapid_keys (id, private_key) VALUES (1, candidate) ON CONFLICT DO NOTHING;
        SELECT private_key FROM vapid_keys
        """,
    ),
    "sweep_kept_requests(hours integer, most integer)": (
        "SETOF text",
        """
        DELETE FROM kept_requests WHERE (user_id, key) IN (
            SELECT user_id, key FROM kept_requests
            WHERE created_at < now() - make_interval(hours => greatest(hours, 24)) LIMIT most
        ) RETURNING run_id
        """,
    ),
    # The call of an import is kept, because with its key the same line is not added again.
    "sweep_task_calls(days integer, most integer)": (
        "SETOF bigint",
        """
        WITH old AS MATERIALIZED (
            SELECT user_id, id, actor = 'import' AS imported FROM task_calls AS call
            WHERE created_at < now() - make_interval(days => greatest(days, 30)) AND (
                actor <> 'import' OR EXISTS (
                    SELECT FROM task_changes AS change
                    WHERE (change.user_id, change.call_id) = (call.user_id, call.id)
                )
            ) LIMIT most
        ), thinned AS (
            DELETE FROM task_changes WHERE (user_id, call_id) IN (SELECT user_id, id FROM old WHERE imported)
        ), gone AS (
            DELETE FROM task_calls WHERE (user_id, id) IN (SELECT user_id, id FROM old WHERE NOT imported)
        )
        SELECT id FROM old
        """,
    ),
}

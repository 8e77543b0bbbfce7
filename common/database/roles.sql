-- Who may do what in this program's database, which holds nothing else: run it there, as a superuser or as an
-- administrator who may create roles and to whom the database belongs. Running it again changes nothing.
--
--   todo_owner    logs in for migrations, usage, export and forget; everything in the schema public belongs to it
--   todo_app      what the services become in each transaction; row-level security keeps it to one user's rows
--   todo_service  the services' login, which has no right but to become todo_app
--
-- Before it, in the same session, passwords can be given; without them those of the roles stay as they are:
--   SET todo.owner_password = '…'; SET todo.service_password = '…';

DO $roles$
DECLARE
    wanted record;
    statement text;
BEGIN
    FOR wanted IN
        SELECT * FROM (VALUES
            ('todo_app', 'NOLOGIN', NULL),
            ('todo_owner', 'LOGIN NOINHERIT', current_setting('todo.owner_password', true)),
            ('todo_service', 'LOGIN NOINHERIT', current_setting('todo.service_password', true))
        ) AS roles (name, kind, password)
    LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted.name) THEN
            EXECUTE format('CREATE ROLE %I', wanted.name);
        END IF;
        EXECUTE format('ALTER ROLE %I %s', wanted.name, wanted.kind);
        -- Only where it has one: who is no superuser may not even name these rights.
        IF EXISTS (
            SELECT FROM pg_roles WHERE rolname = wanted.name
            AND (rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication)
        ) THEN
            EXECUTE format('ALTER ROLE %I NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB NOREPLICATION', wanted.name);
        END IF;
        IF wanted.password <> '' THEN
            EXECUTE format('ALTER ROLE %I PASSWORD %L', wanted.name, wanted.password);
        END IF;
        IF wanted.name <> 'todo_app' AND NOT pg_has_role(wanted.name, 'todo_app', 'MEMBER') THEN
            EXECUTE format('GRANT todo_app TO %I', wanted.name);
        END IF;
    END LOOP;
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        GRANT todo_owner TO CURRENT_USER; -- who gives things to a role must be able to become it
    END IF;

    FOR statement IN
        SELECT format('ALTER DATABASE %I OWNER TO todo_owner', datname)
        FROM pg_database WHERE datname = current_database() AND datdba <> 'todo_owner'::regrole
        UNION ALL
        SELECT 'ALTER SCHEMA public OWNER TO todo_owner'
        FROM pg_namespace WHERE nspname = 'public' AND nspowner <> 'todo_owner'::regrole
        UNION ALL
        -- Version 0.2 may have left it behind; the migration to 0.3 drops it.
        SELECT 'ALTER SCHEMA v01 OWNER TO todo_owner'
        FROM pg_namespace WHERE nspname = 'v01' AND nspowner <> 'todo_owner'::regrole
        UNION ALL
        -- The sequence of a column goes with its table, what belongs to an extension stays with it.
        SELECT format('ALTER TABLE %s OWNER TO todo_owner', oid::regclass)
        FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
        AND relowner <> 'todo_owner'::regrole
        AND NOT EXISTS (
            SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid
            AND (deptype = 'e' OR relkind = 'S' AND deptype IN ('a', 'i'))
        )
        UNION ALL
        SELECT format('ALTER ROUTINE %s OWNER TO todo_owner', oid::regprocedure)
        FROM pg_proc
        WHERE pronamespace = 'public'::regnamespace AND proowner <> 'todo_owner'::regrole
        AND NOT EXISTS (
            SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND deptype = 'e'
        )
        UNION ALL
        -- The policy by which the owner works across users names its owner.
        SELECT format('ALTER POLICY all_people ON %s TO todo_owner', polrelid::regclass)
        FROM pg_policy WHERE polname = 'all_people' AND polroles <> ARRAY['todo_owner'::regrole::oid]
    LOOP
        EXECUTE statement;
    END LOOP;

    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO todo_service', current_database());
    REVOKE CREATE ON SCHEMA public FROM PUBLIC;
    GRANT USAGE ON SCHEMA public TO todo_app;

    -- A login may give itself settings, for all databases and for one, which come before these: none of them stays.
    ALTER ROLE todo_service RESET ALL;
    FOR statement IN
        SELECT format('ALTER ROLE todo_service IN DATABASE %I RESET ALL', datname)
        FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
        WHERE setrole = 'todo_service'::regrole
    LOOP
        EXECUTE statement;
    END LOOP;

    -- Each statement of the services reads a few rows in an index's order; a bitmap of all of them would be sorted first,
    -- which PostgreSQL would do: prepared for any conversation, it expects one of average length.
    ALTER ROLE todo_service SET enable_bitmapscan = off;
    -- None of them takes a second; without a limit, a lock that is never released would hang its caller for ever.
    ALTER ROLE todo_service SET statement_timeout = '10s';
    -- What a process holds that was stopped in the middle of a transaction is let go.
    ALTER ROLE todo_service SET idle_in_transaction_session_timeout = '1min';
    -- In the middle of a pipeline it is not idle, as long as no Sync was sent; that such a one takes long is known since 17.
    IF current_setting('server_version_num')::int >= 170000 THEN
        ALTER ROLE todo_service SET transaction_timeout = '1min';
    END IF;
    -- A machine that is gone closes no connection: who does not answer for a minute and a half is gone.
    ALTER ROLE todo_service SET tcp_keepalives_idle = 60;
    ALTER ROLE todo_service SET tcp_keepalives_interval = 10;
    ALTER ROLE todo_service SET tcp_keepalives_count = 3;
END
$roles$;

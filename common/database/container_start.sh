#!/usr/bin/env bash
# How the database's container starts: before anybody can connect by TCP there are a cluster, passwords and roles. Each
# step can be repeated, on an older version's volume too, so that the next start finishes one that was cut short.
set -euo pipefail
umask 027 # what is written for the services can be read by their group
trap exit INT TERM

here=$(dirname "$0")
volume=${PGDATA%/*/*}
owner=/secrets/owner/MIGRATION_DATABASE_URL
service=/secrets/services/DATABASE_URL

main() {
    hold_volume
    [ -s "$PGDATA/PG_VERSION" ] || make_cluster
    keep "$owner" "postgresql://todo_owner:$(random)@postgres/todo"
    keep "$service" "postgresql://todo_service:$(random)@postgres/todo"
    keep /secrets/services/MCP_TOKEN_SECRET "$(random)"
    keep /secrets/workspace/WORKSPACE_TOKEN_SECRET "$(random)"
    # Of all readers the backend alone has both token secrets.
    cp /secrets/services/* /secrets/workspace/* /secrets/backend/
    prepare_database
    exec postgres -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql -c hba_file="$here/pg_hba.conf" \
        -c ident_file="$here/pg_ident.conf"
}

# The server inherits the lock: who has it knows that nobody else serves these files, whatever process id they name.
hold_volume() {
    exec 9<"$volume"
    flock -n 9 || fail "Another container uses this database: stop it first."
    rm -f "$PGDATA/postmaster.pid"
}

# Beside its place, and renamed: a first start that is cut short leaves nothing half made.
make_cluster() {
    local other
    for other in "$volume"/*/docker/PG_VERSION; do
        [ ! -s "$other" ] || fail "The volume holds a database of PostgreSQL $(<"$other"), which this image cannot open:" \
            "set POSTGRES_IMAGE to one of that version, or move the data with pg_dump."
    done
    rm -rf "$PGDATA.new"
    mkdir -p "${PGDATA%/*}"
    initdb --pgdata="$PGDATA.new" --username="$POSTGRES_USER" --auth-local=peer --auth-host=reject \
        --encoding=UTF8 --locale-provider=builtin --builtin-locale=C.UTF-8 --no-instructions
    mv -T "$PGDATA.new" "$PGDATA"
}

# By a server that only this script can reach: no port, a socket elsewhere, and no statement in the log.
prepare_database() {
    pg_ctl start --silent --timeout=3600 --options="-c listen_addresses='' -c unix_socket_directories=/tmp \
        -c hba_file='$here/pg_hba.conf' -c ident_file='$here/pg_ident.conf' -c log_statement=none -c log_min_error_statement=panic"
    local query=(psql --host=/tmp --username="$POSTGRES_USER" --no-psqlrc --quiet --set=ON_ERROR_STOP=1)
    "${query[@]}" --dbname=postgres <<'SQL'
SELECT 'CREATE DATABASE todo' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'todo') \gexec
SQL
    "${query[@]}" --dbname=todo <<SQL
SET todo.owner_password = '$(password_in "$owner")';
SET todo.service_password = '$(password_in "$service")';
\i $here/roles.sql
SQL
    pg_ctl stop --silent --mode=fast
}

random() {
    head -c 32 /dev/urandom | od -A n -v -t x1 | tr -d ' \n'
}

# Arguments: a file, and the text that it gets if it has none yet.
keep() {
    [ -s "$1" ] && return
    printf '%s\n' "$2" >"$1.new"
    mv "$1.new" "$1"
}

password_in() {
    sed 's|.*://[^:]*:\([^@]*\)@.*|\1|' "$1"
}

fail() {
    echo "$*" >&2
    exit 1
}

main

ARG PYTHON_IMAGE=python:3.13.16-slim
ARG POSTGRES_IMAGE=postgres:18.6
ARG CADDY_IMAGE=caddy:2.10.2

FROM ${POSTGRES_IMAGE} AS postgres
COPY common/database/container_start.sh common/database/pg_hba.conf common/database/pg_ident.conf \
    common/database/roles.sql /opt/todo/
# A directory for each kind of reader, in the group of the services: what is written into it belongs to that group.
RUN chmod -R a+rX /opt/todo && install -d -o postgres -g 10001 -m 2750 /secrets/owner /secrets/services /secrets/backend
RUN install -d -o postgres -g 10002 -m 2750 /secrets/workspace
USER postgres
ENTRYPOINT ["bash", "/opt/todo/container_start.sh"]

# Only with deploy/compose-tls.yml.
FROM ${CADDY_IMAGE} AS caddy
COPY deploy/Caddyfile /srv/Caddyfile
RUN chmod a+r /srv/Caddyfile && install -d -o 10003 -g 10003 -m 700 /state
ENV XDG_DATA_HOME=/state
ENV XDG_CONFIG_HOME=/state
USER 10003:10003
ENTRYPOINT ["caddy", "run", "--config", "/srv/Caddyfile"]

FROM ${PYTHON_IMAGE} AS build
WORKDIR /app
# What the services need: neither tests nor PostgreSQL's binaries are in the image. pyproject.toml says how it is made.
COPY requirements-runtime.lock .
RUN python -m venv --without-pip /venv
# Without bytecode, which is a third of the packages' size.
RUN python -m pip --python /venv/bin/python install --no-compile \
    --require-hashes --no-deps --only-binary :all: --requirement requirements-runtime.lock
# The packages that .dockerignore lets through.
COPY . .
RUN chmod -R a+rX .

FROM ${PYTHON_IMAGE} AS services
COPY --from=build /venv /venv
COPY --from=build /app /app
WORKDIR /app
ENV PATH=/venv/bin:$PATH
USER 10001:10001
# The arguments name a service: backend, mcp_server, offline_model, workspace; or migrations.
ENTRYPOINT ["python", "-m"]
CMD ["backend"]

# With what agents' commands need beside Python, and another account: the others' secrets are not for its group.
FROM services AS workspace
USER 0:0
RUN apt-get update && apt-get install --yes --no-install-recommends bubblewrap git && rm -rf /var/lib/apt/lists/*
RUN install -d -o 10002 -g 10002 -m 700 /files
USER 10002:10002
CMD ["workspace"]

FROM services
# In memory, for the other processes of the container. Not for the workspace, where agents' commands may write there.
ENV PYTHONPYCACHEPREFIX=/tmp/pycache

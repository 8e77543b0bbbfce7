ARG PYTHON_IMAGE=python:3.13.16-slim
ARG POSTGRES_IMAGE=postgres:18.6

FROM ${POSTGRES_IMAGE} AS postgres

FROM ${PYTHON_IMAGE} AS build
WORKDIR /app
# The part of requirements.lock that the services need: neither tests nor PostgreSQL's binaries are in the image. Made by
# uv pip compile pyproject.toml --constraint requirements.lock --output-file requirements-runtime.lock
# --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate
COPY requirements-runtime.lock .
RUN python -m venv --without-pip /venv
RUN python -m pip --python /venv/bin/python install \
    --require-hashes --no-deps --only-binary :all: --requirement requirements-runtime.lock
# The rooms that .dockerignore lets through; compiled here, because where they run nothing can be written.
COPY . .
RUN python -m compileall -q --invalidation-mode unchecked-hash . && chmod -R a+rX .

FROM ${PYTHON_IMAGE}
COPY --from=build /venv /venv
COPY --from=build /app /app
WORKDIR /app
ENV PATH=/venv/bin:$PATH
USER 10001:10001
# The arguments name a service: backend, mcp_server, offline_model; or migrations.
ENTRYPOINT ["python", "-m"]
CMD ["backend"]

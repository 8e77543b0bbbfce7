"""Serves the endpoint on the port OFFLINE_PORT."""

import os

import uvicorn

from tests.scripted_endpoint.app import create_app

# The clients close idle connections after five seconds. A server that does so too could close one that is being used.
uvicorn.run(
    create_app(), port=int(os.environ["OFFLINE_PORT"]), lifespan="off", log_level="warning", timeout_keep_alive=75
)

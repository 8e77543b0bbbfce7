"""Serves the endpoint on the port OFFLINE_PORT."""

import os

import uvicorn

from tests.scripted_endpoint.app import create_app

uvicorn.run(create_app(), port=int(os.environ["OFFLINE_PORT"]), lifespan="off", log_level="warning")

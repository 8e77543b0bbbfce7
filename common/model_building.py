from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import BaseModel


@contextmanager
def defer_model_building() -> Iterator[None]:
    """Lets Pydantic build the models that are imported in the block when each is used first.

    For SDKs with more than a thousand models, of which a process uses a few: to build them all takes a sixth of its
    start. Not for models that are large and used, as building one at a request would hold the event loop.
    """
    BaseModel.model_config["defer_build"] = True  # subclasses inherit it
    try:
        yield
    finally:
        del BaseModel.model_config["defer_build"]

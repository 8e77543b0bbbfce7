from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine


def create_engine(url: str, *, pool_size: int = 5, max_overflow: int = 5) -> AsyncEngine:
    """An engine for any libpq URL (`postgres://`, `postgresql://`); `transaction` replaces connections that are dead.

    The driver runs in autocommit: `transaction` opens each one itself, with role and user in the same round trip.
    """
    return create_async_engine(
        make_url(url.replace("postgres://", "postgresql://", 1)).set(drivername="postgresql+psycopg"),
        isolation_level="AUTOCOMMIT",
        hide_parameters=True,  # an error's text goes to the log, what people wrote does not
        pool_size=pool_size,
        max_overflow=max_overflow,
        pool_timeout=10,
        pool_recycle=1800,
        connect_args={"connect_timeout": 5, "application_name": "todo-assistant"},
    )

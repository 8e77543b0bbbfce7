"""The table of the key of push notifications, for Alembic."""

from datetime import datetime

from sqlalchemy import TIMESTAMP, CheckConstraint, Column, Integer, MetaData, func
from sqlmodel import Field, SQLModel


class VapidKeyRow(SQLModel, table=True):
    """The one key by which push services recognise this installation. Only functions of the owner reach it."""

    metadata = MetaData()
    __tablename__ = "vapid_keys"  # pyright: ignore[reportAssignmentType]
    __table_args__ = (
        CheckConstraint("id = 1", name="vapid_keys_single"),
        CheckConstraint("octet_length(private_key) = 32", name="vapid_keys_private_key"),
    )

    id: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))
    private_key: bytes
    created_at: datetime = Field(sa_column=Column(TIMESTAMP(timezone=True), nullable=False, server_default=func.now()))


METADATA = VapidKeyRow.metadata

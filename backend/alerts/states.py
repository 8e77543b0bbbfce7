"""The kinds and states of alerts and deliveries. Apart from the tables, whose classes only migrations import."""

from typing import Literal

AlertKind = Literal["task", "digest", "held", "several", "schedule", "test"]
AlertState = Literal["pending", "collected", "held", "merged", "sent", "shown", "failed", "expired"]
DeliveryState = Literal["sending", "accepted", "shown", "failed", "gave_up"]

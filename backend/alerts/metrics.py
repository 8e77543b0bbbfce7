"""Metrics of notifications; none has a text, an address or a user."""

from prometheus_client import Counter, Gauge

OLDEST_SECONDS = Gauge(
    "todo_alerts_oldest_seconds",
    "For how long the oldest notification should have been sent or tried again",
    multiprocess_mode="livemax",
)
DELIVERIES = Counter("todo_alert_deliveries", "Tries to send a notification", ["channel", "result"])
REPETITIONS = Counter("todo_alert_repetitions", "Tries to send a notification that may have arrived before")

"""The plan that makes schedules, whose runs send the model a message at certain times."""

from offline_model import replies
from offline_model.language import slots
from offline_model.plans import Context, Intent, PlannedCall, Steps


def add_schedule(intent: Intent, context: Context) -> Steps:
    read = slots.read_schedule(intent.text)
    assert read is not None
    assert read.time is not None
    arguments = {"text": read.text, "repeat": read.repeat, "time": f"{read.time:%H:%M}"}
    (result,) = yield (PlannedCall("add_schedule", arguments),)
    return replies.NOT_DONE if replies.is_rejected(result.error) else result.error

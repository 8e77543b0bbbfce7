"""Tasks that an agent is to carry out."""

from offline_model.rules.plans.delegating import carry_out
from offline_model.rules.wishes.wish import Wish

DELEGATING = (
    Wish("(do|carry out|work on|take care of) <numbers> [for me]", carry_out),
    Wish("(let|have) (an|the) (agent|coder) (do|carry out|work on|take care of) <task>", carry_out),
)

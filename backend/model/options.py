"""The model and the temperature that a user may choose for one run."""

from typing import Any

from backend.errors import InvalidRequest
from backend.model.providers import ModelEndpoint


def check_options(model: object, temperature: object, *, endpoint: ModelEndpoint) -> dict[str, Any]:
    """The options of a run; None stands for the server's setting. Raises `InvalidRequest` for what is not offered."""
    if model is not None and model not in endpoint.models:
        raise InvalidRequest(f"This model is not available. Choose one of these: {', '.join(endpoint.models)}.")
    options = {} if model is None else {"model": str(model)}
    if temperature is None:
        return options
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not 0 <= temperature <= 2:
        raise InvalidRequest("temperature must be a number from 0 to 2. Leave it out to use the server's setting.")
    name = endpoint.model if model is None else str(model)
    if not endpoint.profile.takes_temperature_of(name):
        raise InvalidRequest(f"The model {name} takes no temperature. Leave it out.")
    if temperature > endpoint.profile.max_temperature:
        most = f"{endpoint.profile.max_temperature:g}"
        raise InvalidRequest(f"The model {name} takes a temperature from 0 to {most}. Choose a lower one.")
    return {**options, "temperature": float(temperature)}

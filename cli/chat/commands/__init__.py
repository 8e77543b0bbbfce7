"""Commands begin with a slash and are never sent to the assistant. Each may raise `ApiError` and `ConnectionLost`."""

"""What begins with a slash: done here, or asked for at the product's doors, and never sent to the assistant.

Each may raise `ApiError` and `ConnectionLost`.
"""

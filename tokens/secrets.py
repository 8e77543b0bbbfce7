import re

_PLACEHOLDER = re.compile(r"change.?(me|this|it)|example|placeholder|your.?secret", re.IGNORECASE)


def is_weak(secret: str) -> bool:
    """Whether a secret is short, made of few characters, or still an example's."""
    return len(secret.encode()) < 32 or len(set(secret)) < 8 or _PLACEHOLDER.search(secret) is not None

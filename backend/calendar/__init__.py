"""A person's dated tasks as calendar programs read them (RFC 5545), at an address that only they know."""

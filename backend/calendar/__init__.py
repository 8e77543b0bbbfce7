"""The dated tasks of a user as a calendar (RFC 5545), at an address that contains a secret."""

"""What the model reads, rendered from the rows of a conversation."""

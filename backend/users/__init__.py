"""What is stored of a user apart from conversations, and all rows of a user for their export and deletion."""

"""What is known of English, and of the language of patterns."""

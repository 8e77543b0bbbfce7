"""What is known of English: texts as words, templates of sentences, and what may stand in their slots."""

"""`./todo chat`: the assistant's conversations in a terminal, over HTTP. The prompt comes before slow imports."""

"""The run API: chats and their interactions, for programs that speak plain HTTP."""

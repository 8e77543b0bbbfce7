"""The widgets of a conversation, rendered from tool calls and from the tasks as they are now; and their actions."""

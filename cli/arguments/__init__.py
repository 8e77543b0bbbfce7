"""What `./todo` takes, and what it says to who types it wrong. Standard library only, as it answers before packages."""

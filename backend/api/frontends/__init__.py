"""`POST /chat` and `/chat/stream`: runs as front ends read them that people already have."""

"""ChatKit's protocol at `POST /chatkit`, and the plain request form at the same address."""

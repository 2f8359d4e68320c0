"""Containers of podman, with the limits that engines and clusters put on them."""

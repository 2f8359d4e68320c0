"""The backend of another distribution; it has the planted fault that ``PLANTED_FAULT`` names."""

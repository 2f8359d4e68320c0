"""Another distribution's backend, with a fault in it that ``PLANTED_FAULT`` names."""

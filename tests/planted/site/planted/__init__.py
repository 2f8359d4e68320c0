"""Another distribution's backend, with a planted fault that ``PLANTED_FAULT`` names."""

"""What each test costs: ``make test-costs``."""

"""Places where users run ranks: each place is set up in a scratch folder, where real jobs run."""

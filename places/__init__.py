"""Places where users run, set up in a scratch folder, and real jobs there."""

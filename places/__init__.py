"""Places where users run ranks: each is set up in a scratch folder, and real jobs run there."""

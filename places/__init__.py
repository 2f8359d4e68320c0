"""Places where users run ranks, each set up in a scratch folder, and real jobs in them."""

"""What users pass: which arguments fit a call, and what is said of those that do not."""

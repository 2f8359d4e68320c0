"""The waiting that all transports share: what a rank does in a wait, and the pulse of a leader."""

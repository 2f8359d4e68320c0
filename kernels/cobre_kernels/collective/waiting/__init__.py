"""The waiting that all transports share: its policy, and the pulse of a leader."""

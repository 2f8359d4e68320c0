"""The checks of a release: the steps of ``make release-check``, which also run alone."""

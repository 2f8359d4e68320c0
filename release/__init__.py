"""What a release must pass: ``make release-check``, in steps that run alone too."""

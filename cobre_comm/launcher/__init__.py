"""How ranks are started, watched and ended.

``run`` (the command) and ``launch`` (the function) share the job's names (``job``), its port
(``port``), the environment of a rank (``environment``), the warm-up (``warm``), the guardian that
outlives them (``guardian``) and the rule that finds the first cause (``verdict``). ``nodes`` makes
of several launchers one job.
"""

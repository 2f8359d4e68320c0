"""Training: its plan, shared data, stopping and resuming; ``loop`` has the compiled part.

Other programs call `run_training` of `training.run`.
"""

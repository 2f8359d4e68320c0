"""Training: its plan, what ranks share, stopping and going on; ``loop`` has what is compiled.

`run_training` in `training.run` is what other programs call.
"""

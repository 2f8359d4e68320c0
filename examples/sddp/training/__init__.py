"""Training: plan and memory of a run, forward and backward pass, the loop over all ranks.

`run_training` in `training.run` is what other programs call.
"""

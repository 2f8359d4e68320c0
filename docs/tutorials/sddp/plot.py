import matplotlib.pyplot as plt
import numpy as np

bounds = np.load("bounds.npy")
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
iterations = np.arange(1, len(bounds) + 1)
axes.plot(iterations, bounds[:, 0], color="#0072b2", label="lower bound")
axes.plot(iterations, bounds[:, 1], "o", color="#d55e00", label="mean of simulated costs")
axes.set(xlabel="iteration", ylabel="cost")
axes.legend(frameon=False)
figure.savefig("bounds.svg")

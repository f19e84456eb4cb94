"""Kernels that people serve and train beyond KernelBench, a file for each class; `python3 bench/real` runs them."""

"""Where a model's time goes, by module and operator, and its hot modules as tasks.

  models   a model and its inputs, from a file in KernelBench's form or a configuration of Hugging Face
  spans    times by module and operator, from torch.profiler
  ranking  modules that are alike together, and what a faster one would give
  tasks    a module as a task file

Start at spans.py. May import: rule.
"""

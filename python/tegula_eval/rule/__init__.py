"""What a task asks for, and whether a result is right.

  tasks            a folder of modules: KernelBench's form
  variants         the same module at smaller and odd sizes
  reference        what the module gives, in its own precision and in float64
  verdict          whether a result is right
  error_pattern    where wrong elements lie, in words
  tolerance        a benchmark's own rule for what is close enough
  trivial_answers  whether zeros, one number, an input or another call's result would pass

Start at verdict.py. May import: nothing.
"""

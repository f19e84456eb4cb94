"""Judges Tegula programs against PyTorch modules.

  tasks      a folder of modules: KernelBench's form
  variants   the same module at smaller and odd sizes
  reference  what the module gives, in its own precision and in float64
  binding    which of the program's parameters stands for what of the module
  runner     compiles and runs a program (libtegula)
  verdict    whether a result is right
  evaluate   all of that for one program, in a child process
  isolation  children with deadlines and memory limits
  store      results that survive a kill
  summary    counts and fast_p
  cli        the command tegula-eval
  missing    packages that a command needs and that are not here
"""
__version__ = "0.1.0"

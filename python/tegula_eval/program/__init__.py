"""A Tegula program: compiled, called, and its parameters bound to a module's.

  library     where libtegula and the command lie
  runner      compiles and runs a program (libtegula through ctypes)
  binding     which of the program's parameters stands for what of the module
  provenance  what a result came from: machine, versions, and what the compiler made of the program

Start at runner.py. May import: rule.
"""

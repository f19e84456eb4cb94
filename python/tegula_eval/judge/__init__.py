"""Judges one program, candidate or task, in a process of its own.

  evaluate    a Tegula program on a task's variants: the record of fixed form
  own_sizes   a Tegula program at the task's own sizes on a device, and its time
  candidates  a Python file with ModelNew, in a confined process
  trial       an answer in one of several languages, and its time beside eager mode
  audit       a task alone: the flags that commands/audit.py explains
  export      a program as a Python file with ModelNew

Start at evaluate.py. May import: proofs, confine, program, records, rule, timing.
"""

"""How long a call takes.

  clock         the clock for one call
  at_variant    a program against its module at the sizes of a variant
  at_own_sizes  a program, eager mode and torch.compile at the task's own sizes
  roofline      the least time that a device allows
  device_idle   whether another process computes on a device
  device_turns  who computes on a device: many that judge, or one that measures

Start at clock.py. May import: program, rule.
"""

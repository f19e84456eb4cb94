"""Processes that judge side by side, and who hands them requests.

  pool           workers on this machine: a process for each, begun anew where it dies
  worker         that process: it runs a function of judge/ in a child for each request
  cluster        workers on many machines, through Ray
  device         a process for each device, for what runs at a task's own sizes
  device_worker  that process

Start at pool.py. May import: proofs, confine, judge, program, rule, timing.
"""

"""Foreign code in a process that reaches nothing else.

  child        runs a function in a child process, with a deadline and a limit on memory
  session      a candidate's process as seen from outside: gives inputs, takes outputs, holds the clock
  guest        that process itself
  starter      forks guests, each behind the layers that follow
  namespaces   users, processes, mounts and network of its own
  landlock     what it may reach of the file system
  seccomp      which system calls it may make
  cgroup       its limits on memory and processes
  processes    its descendants, and their end
  arena        memory that it shares with the process that judges
  environment  variables that it is given

Start at session.py, then starter.py. What a guest is forked from (starter.py, guest.py, arena.py and the layers) imports
nothing that knows tasks. May import: program, timing.
"""

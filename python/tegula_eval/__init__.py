"""Judges Tegula programs, and other candidates, against PyTorch modules.

  cli      the command tegula-eval
  nvrtc    CUDA C++ from a string, for answers in CUDA
  client   a client of `tegula-eval serve`, for training runs
  missing  packages that a command needs and that are not here

The packages, each of which imports only those above it, and of these the ones that its own text names:

  rule      what a task asks for, and whether a result is right
  program   a Tegula program: compiled, called, bound to a module
  records   what runs leave, and what is made of it
  suites    benchmarks of others: their files as tasks, and their scores
  timing    how long a call takes
  profiling  where a model's time goes, and its hot modules as tasks
  confine   foreign code in a process that reaches nothing else
  proofs    whether a program is what a module is, by tegula prove
  judge     judges one program, candidate or task
  workers   processes that judge side by side
  model     a model that writes programs
  trial     the same tasks in several languages: prompts and answers
  service   judging over HTTP
  commands  the commands of tegula-eval
"""


def __getattr__(name: str):
    if name != "__version__":
        raise AttributeError(f"module 'tegula_eval' has no attribute '{name}'")
    from tegula import __version__  # loads the compiler: only for who asks
    return __version__

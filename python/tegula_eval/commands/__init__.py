"""The commands of tegula-eval, a file for each that is more than a few lines (cli.py has their arguments, and the rest).

  kernelbench    programs, candidates or a model's answers on a folder of tasks
  suites         `run`: a benchmark of others, and its score beside ours
  trial          the same tasks in several languages: answers of files, or of a model
  times          `time`: programs at the tasks' own sizes on a device
  launches       where a program's time on the device goes
  profile        where a model's time goes, and its hot modules as tasks
  audit          tasks on which an answer without the work passes
  export         programs as ModelNew files
  replay         what a record holds, done again
  options        arguments that several of them take
  exit_codes     what they exit with
  program_files  which file holds the program for a task
  display        what a run shows while it goes
  signals        what signals do while a command runs

Start at kernelbench.py. May import: judge, model, profiling, program, records, rule, suites, trial, workers.
"""

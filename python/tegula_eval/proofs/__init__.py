"""Whether a program is what a module is, by `tegula prove`.

  trace    takes PyTorch functions apart; part of the program `tegula`, too, so that it runs alone
  module   the module as a function of the program's parameters
  asking   asks the command, and takes apart what it names
  certify  what a record says of it

May import: program, rule.
"""

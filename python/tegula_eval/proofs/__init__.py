"""Proofs that a program is what a module is, by `tegula prove`: module.py writes the module as a function of the program's
parameters, asking.py asks, and trace.py takes functions apart: it is part of the program `tegula`, too, and runs alone.

May import: program, rule.
"""

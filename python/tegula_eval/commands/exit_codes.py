"""What the commands of tegula-eval exit with."""
RIGHT = 0       # all that was judged
NOT_RIGHT = 1   # something that was judged
WRONG_CALL = 2  # arguments, or a file that they name
STOPPED = 3     # before the end: the same command goes on

#!/bin/sh
# exits.sh CODE COMMAND...: fails unless the command exits with that very code.
want=$1
shift
"$@"
got=$?
[ "$got" = "$want" ] && exit 0
echo "exit code $got, expected $want: $*"
exit 1

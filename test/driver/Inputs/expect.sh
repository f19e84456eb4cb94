# expect.sh CODE COMMAND...: runs the command and succeeds if it exits with CODE.
wanted=$1
shift
"$@"
got=$?
[ $got = $wanted ] && exit 0
echo "expect.sh: expected exit code $wanted, got $got: $*" >&2
exit 1

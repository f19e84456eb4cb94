#!/bin/sh
# Stands in for ptxas where the driver is FakeCuda, which reads PTX: the architecture goes in front.
#   ptxas.sh -arch=sm_90a ... INPUT.ptx -o OUTPUT.cubin
# FAKE_PTXAS_ARCH overrides the architecture; FAKE_PTXAS_LOG names a file to which each use adds a line.
for word; do
  case $word in
  --version) echo 'Cuda compilation tools, release 13.0, V13.0.0-fake'; exit ;;
  -arch=*) arch=${word#-arch=} ;;
  *.ptx) input=$word ;;
  *.cubin) output=$word ;;
  esac
done
[ -z "$FAKE_PTXAS_LOG" ] || echo assembled >>"$FAKE_PTXAS_LOG"
{ echo "fake-cubin ${FAKE_PTXAS_ARCH:-$arch}"; cat "$input"; printf '\0'; } >"$output"

#!/bin/sh
# Stands in for ptxas where the driver is FakeCuda, which reads PTX: the architecture goes in front.
#   ptxas.sh -arch=sm_90a ... INPUT.ptx -o OUTPUT.cubin
# FAKE_PTXAS_ARCH overrides the architecture; FAKE_PTXAS_LOG names a file to which each use adds a line. With
# FAKE_PTXAS_OLD it does not know --split-compile. FAKE_PTXAS_ENVIRONMENT names a file that gets its environment.
for word; do
  case $word in
  --version) echo 'Cuda compilation tools, release 13.0, V13.0.0-fake'; exit ;;
  -arch=*) arch=${word#-arch=} ;;
  --split-compile=*)
    threads=${word#--split-compile=}
    [ -z "$FAKE_PTXAS_OLD" ] || { echo "ptxas fatal   : Unknown option '-split-compile'" >&2; exit 255; }
    ;;
  *.ptx) input=$word ;;
  *.cubin) output=$word ;;
  esac
done
[ -z "$FAKE_PTXAS_LOG" ] || echo "assembled${threads:+ by $threads}" >>"$FAKE_PTXAS_LOG"
[ -z "$FAKE_PTXAS_ENVIRONMENT" ] || env >"$FAKE_PTXAS_ENVIRONMENT"
{ echo "fake-cubin ${FAKE_PTXAS_ARCH:-$arch}"; cat "$input"; printf '\0'; } >"$output"

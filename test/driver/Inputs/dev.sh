# Calls functions of ./dev, whose path is given, one by one. ctest and nproc are stood in for.
. "$1"

ctest() { printf '  Test  #1: on-a-device\n  Test #12: on-two-devices\n'; }
nproc() { echo 64; }
mkdir -p "$logs"
log=$(mktemp)

echo "jobs: $(default_jobs) of 64"
cat >"$log" <<END
 1/3 Test  #1: on-a-device ......................***Skipped   0.02 sec
 2/3 Test  #3: needs-a-package ..................***Skipped   0.02 sec
 3/3 Test #10: passes ...........................   Passed    0.02 sec
END
echo "skipped: $(skipped "$log")"
rm "$log"
(step dev-test "Failing" bash -c 'echo reason; exit 3') 2>&1 || echo "status: $?"
(step dev-test "Working" true) && echo "status: $?"
rm -f "$logs/dev-test.log"
echo "docs: $(requirements docs)"
echo "small: $(requirements small)"
echo "all: $(requirements all | grep -v gpu | paste -sd ' ')"

# A tree with its build folder, copied: the first call there configures anew, the next one does nothing.
tree=$(mktemp -d)
mkdir "$tree/one"
cp "$1" "$tree/one/dev"
echo 'cmake_minimum_required(VERSION 3.25)
project(Small LANGUAGES NONE)' >"$tree/one/CMakeLists.txt"
echo '{"version": 6, "configurePresets": [{"name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build/dev"}]}' \
  >"$tree/one/CMakePresets.json"
bash -c '. "$1/dev"; configure; configure' - "$tree/one"
cp -r "$tree/one" "$tree/two"
bash -c '. "$1/dev"; configure; configure; foreign_home' - "$tree/two" | sed "s|$tree|TREE|"
ninja -C "$tree/two/build/dev" >/dev/null && echo "the copy builds"
rm -r "$tree"

(main --agian) 2>&1 || echo "status: $?"
(main build test) 2>&1 || echo "status: $?"
(main --help) | head -n 1

# twins.sh FOLDER: of the results that agree.sh left there, each is what its twin is.
set -eu
for twin in "$1"/*twin.npy; do cmp "${twin%twin.npy}.npy" "$twin"; done

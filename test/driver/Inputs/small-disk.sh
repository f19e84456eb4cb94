# small-disk.sh FILE: formats a copy of FILE on a file system without room for the result.
unshare -rm true 2> /dev/null || { echo "skipped: no tmpfs can be mounted"; exit 0; }
unshare -rm bash -c '
  folder=$(mktemp -d)
  mount -t tmpfs -o size=16k tmpfs "$folder" || { echo "skipped: no tmpfs can be mounted"; exit 0; }
  cp "$1" "$folder/x.tgl"
  dd if=/dev/zero of="$folder/filler" bs=4096 2> /dev/null
  tegula fmt "$folder/x.tgl"
  code=$?
  cmp "$1" "$folder/x.tgl" && [ $code = 3 ] && [ "$(ls -A "$folder" | wc -l)" = 2 ]
' bash "$1"

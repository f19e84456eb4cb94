# completion.sh FILE FOLDER: prints in the folder what the completion that FILE defines says of some lines.
. "$1"
cd "$2" || exit 1
compopt() { :; } # which only works while a line is edited

complete_line() { # WORD...
  COMP_WORDS=(tegula "$@")
  COMP_CWORD=$#
  _tegula
  local found # in an order of our own: bash sorts what it shows
  mapfile -t found < <(printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort)
  echo "[$*]:${found[*]:+ ${found[*]}}"
}

complete_line com
complete_line fi
complete_line compile --em
complete_line compile --emit =
complete_line compile --emit = pt
complete_line run --ta
complete_line run --target = e
complete_line compile --report =
complete_line check ''
complete_line check c
complete_line compile --nothing-begins-so

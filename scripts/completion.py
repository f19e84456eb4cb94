#!/usr/bin/env python3
"""Writes the completion of the command for bash, from what it says of itself. (zsh takes it after `bashcompinit`.)

  completion.py --tegula=PATH [--out=FILE]
"""
import argparse
import pathlib
import re
import sys

from command_help import ask, commands_of, groups_of

TEXT = r"""# Completion of tegula for bash, made by scripts/completion.py.
_tegula() {
  local word=${COMP_WORDS[COMP_CWORD]} option= options= values=
  # bash takes the equals sign for a word of its own.
  if [[ $word == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 1]} word=
  elif (( COMP_CWORD > 1 )) && [[ ${COMP_WORDS[COMP_CWORD - 1]} == = ]]; then
    option=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  COMPREPLY=()
  if (( COMP_CWORD == 1 )); then
    mapfile -t COMPREPLY < <(compgen -W "@COMMANDS@ --help --version" -- "$word")
    return
  fi
  case ${COMP_WORDS[1]} in
@OPTIONS@
  esac
  if [[ -n $option ]]; then
    case "${COMP_WORDS[1]} $option" in
@VALUES@
    esac
    if [[ -n $values ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
    else
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    [[ ${COMPREPLY-} != *= ]] || compopt -o nospace
  else
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -d -- "$word"; compgen -f -X '!*.tgl' -- "$word")
  fi
}
complete -F _tegula tegula
"""


def options_of(tegula, command):
    """Name, whether a value follows, and the values that are told, of each option."""
    for _, _, options in groups_of(ask(tegula, command, "--help"))[1]:
        for option, _ in options:
            name = re.match(r"-[\w-]+", option)[0]
            told = re.search(r"<(.*)>", option)
            yield name, option[len(name):], told[1].split("|") if told and re.fullmatch(r"[\w-]+(\|[\w-]+)+|json", told[1]) else []


def completion(tegula):
    commands = [name for name, _ in commands_of(ask(tegula, "--help"))]
    options, values = [], []
    for command in commands:
        told = list(options_of(tegula, command))
        names = " ".join([*(name + ("=" if rest.startswith("=") else "") for name, rest, _ in told), "--help"])
        options.append(f'    {command}) options="{names}" ;;')
        values += [f'      "{command} {name}") values="{" ".join(known)}" ;;' for name, _, known in told if known]
    return TEXT.replace("@COMMANDS@", " ".join(commands)).replace("@OPTIONS@", "\n".join(options)).replace(
        "@VALUES@", "\n".join(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tegula", required=True)
    parser.add_argument("--out")
    args = parser.parse_args()
    text = completion(args.tegula)
    if args.out:
        pathlib.Path(args.out).write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()

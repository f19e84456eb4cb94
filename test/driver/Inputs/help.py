"""help.py: says for each command of tegula the headings of its options in --help, and of --help-hidden the options that stand
under LLVM's headings."""
import re
import subprocess


def ask(*arguments):
    return subprocess.run(["tegula", *arguments], capture_output=True, text=True, check=True).stdout


def groups(text):
    """The options below each heading."""
    found, heading = {}, None
    for line in text.splitlines():
        if at := re.match(r"(\S.*):$", line):
            heading = found.setdefault(at[1], [])
        elif at := re.match(r"  (-[\w-]+)", line):
            heading.append(at[1])
    return {heading: options for heading, options in found.items() if options}


for command in re.findall(r"^  ([\w-]+)  ", ask("--help"), re.M):
    print(f"{command}:", ", ".join(groups(ask(command, "--help"))))
    for heading, options in groups(ask(command, "--help-hidden")).items():
        if heading.startswith("Gener"):
            print(f"  hidden, {heading}:", *options)

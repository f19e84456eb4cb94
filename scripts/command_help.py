"""What the command says of itself: its commands, and the options of each."""
import re
import subprocess

GENERIC = "Generic Options"


def ask(tegula, *arguments):
    return subprocess.run([tegula, *arguments], check=True, capture_output=True, text=True).stdout


def commands_of(text):
    """Name and description of each command."""
    return re.findall(r"^  ([\w-]+) {2,}(.+)$", text, re.M)


def groups_of(text):
    """Of a command's --help: its usage, and the groups of its options as (heading, explanation, [(option, text)])."""
    usage = re.search(r"^USAGE: (.+)$", text, re.M)[1]
    groups = []
    for line in text.splitlines():
        option = re.match(r"  (-\S+(?:\[=<.*?>\]|=<.*?>| <.*?>)?) +- (.+)$", line)
        if heading := re.match(r"([A-Z]\S*(?: \S+)*):$", line):
            groups.append((heading[1], [], []))
        elif option and groups:
            groups[-1][2].append((option[1], option[2]))
        elif re.match(r" +- ", line) and groups and groups[-1][2]:  # a value of the option above
            name, told = groups[-1][2].pop()
            groups[-1][2].append((name, f"{told}; {line.strip()[2:]}"))
        elif re.match(r"  +=\S", line) and groups and groups[-1][2]:
            name, told = groups[-1][2].pop()
            groups[-1][2].append((name, f"{told}; {' '.join(line.split())}"))
        elif line and not line.startswith(" ") and groups and not groups[-1][2]:
            groups[-1][1].append(line)
    return usage, [(heading, " ".join(told), options) for heading, told, options in groups if options and heading != GENERIC]

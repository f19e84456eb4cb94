"""man.py TREE: prints the manual page after comparing it with every command's --help."""
import pathlib
import re
import shutil
import subprocess
import sys


def ask(*arguments):
    return subprocess.run(["tegula", *arguments], capture_output=True, text=True, check=True).stdout


page = subprocess.run([sys.executable, pathlib.Path(sys.argv[1], "scripts/man_page.py"), f"--tegula={shutil.which('tegula')}"],
                      capture_output=True, text=True, check=True).stdout
sections = dict(re.findall(r'^\.SH "?TEGULA ([\w\\-]+)"?\n(.*?)(?=^\.SH |\Z)', page, re.M | re.S))
commands = re.findall(r"^  ([\w-]+)  ", ask("--help"), re.M)
assert len(commands) > 10 and {one.upper().replace("-", "\\-") for one in commands} == set(sections), (commands, list(sections))
for command in commands:
    options = set(re.findall(r"^ +(-[\w-]+)", ask(command, "--help"), re.M)) - {"--help", "--help-list"}
    told = {one.replace("\\", "") for one in re.findall(r"^\.B (\\-[\w\\-]+)", sections[command.upper().replace("-", "\\-")], re.M)}
    assert options == told, (command, options ^ told)
if roff := shutil.which("groff"):
    done = subprocess.run([roff, "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
print(page, end="")

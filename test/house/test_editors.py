#!/usr/bin/env python3
"""editors: the colours are those of the grammar, and the extension names what is there."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "editors/vscode"
RULES = json.loads((FOLDER / "syntaxes/tegula.tmLanguage.json").read_text())["patterns"]
PROGRAMS = [*(ROOT / "dsl/kernels").glob("*/*.tgl"), *(ROOT / "dsl/std").glob("*.tgl")]


def colours(text):
    """What an editor makes of a text: (scope, piece), by the first rule that matches; every piece has one."""
    rules = [(rule["name"], re.compile(rule["match"])) for rule in RULES]
    for line in text.split("\n"):
        at = 0
        while at + len(line[at:]) - len(line[at:].lstrip()) < len(line):
            at += len(line[at:]) - len(line[at:].lstrip())
            name, match = next((name, match) for name, rule in rules if (match := rule.match(line, at)))
            yield name, match[0]
            at = match.end()


class Editors(unittest.TestCase):
    def test_colours_are_made_from_the_grammar(self):
        self.assertEqual(subprocess.run([sys.executable, ROOT / "editors/textmate.py", "--check"]).returncode, 0)

    def test_a_change_of_the_grammar_is_noticed(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            for name in ("editors/textmate.py", "editors/vscode/syntaxes/tegula.tmLanguage.json", "dsl/Tegula.g4",
                         "dsl/Builtins.def", "ir/DTypes.cpp"):
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy / name)
            shutil.copytree(ROOT / "dsl/std", copy / "dsl/std")
            check = [sys.executable, copy / "editors/textmate.py", "--check"]
            self.assertEqual(subprocess.run(check).returncode, 0)
            for name, old, new in (("dsl/Tegula.g4", "RETURN : 'return' ;", "RETURN : 'return' ;\nWHILE : 'while' ;"),
                                   ("dsl/Tegula.g4", "BITXOR : '^' ;", "BITXOR : '^' ;\nARROWS : '=>>' ;"),
                                   ("dsl/Builtins.def", "TEGULA_BUILTIN(exp,", "TEGULA_BUILTIN(expo,")):
                text = (copy / name).read_text()
                (copy / name).write_text(text.replace(old, new))
                self.assertNotEqual(subprocess.run(check, capture_output=True).returncode, 0)
                (copy / name).write_text(text)

    def test_the_tree_sitter_grammar_is_made_from_the_grammar(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            shutil.copytree(ROOT / "editors", copy / "editors")
            for name in ("dsl/Tegula.g4", "dsl/Builtins.def", "ir/DTypes.cpp"):
                (copy / name).parent.mkdir(exist_ok=True)
                shutil.copy(ROOT / name, copy / name)
            check = [sys.executable, copy / "editors/treesitter.py", "--check"]
            self.assertEqual(subprocess.run(check).returncode, 0)
            made = "editors/tree-sitter-tegula/src/parser.c"
            for name, old, new in (("dsl/Tegula.g4", "RETURN : 'return' ;", "RETURN : 'give' ;"),
                                   ("dsl/Tegula.g4", "| '!=' ;", "| '!=' | '<>' ;"),
                                   ("dsl/Tegula.g4", "sizeDefinition : name '='", "sizeDefinition : name ':' '='"),
                                   ("dsl/Tegula.g4", "atom ('**' factor)?", "atom ('**' factor '!'?)?"),
                                   ("dsl/Builtins.def", "TEGULA_BUILTIN(exp,", "TEGULA_BUILTIN(expo,"),
                                   (made, "#define STATE_COUNT", "#define STATE_COUNT 0")):
                text = (copy / name).read_text()
                self.assertIn(old, text)
                (copy / name).write_text(text.replace(old, new))
                self.assertNotEqual(subprocess.run(check, capture_output=True).returncode, 0, new)
                (copy / name).write_text(text)

    def test_both_forms_of_the_tree_sitter_grammar_are_the_same(self):
        node = shutil.which("node")
        if not node:
            return
        script = f"""
const rule = (one) => typeof one === "string" ? {{ type: "STRING", value: one }}
  : one instanceof RegExp ? {{ type: "PATTERN", value: one.source }} : one;
const symbol = (name) => ({{ type: "SYMBOL", name }});
const $ = new Proxy({{}}, {{ get: (_, name) => symbol(name) }});
const prec = (value, one) => ({{ type: "PREC", value, content: rule(one) }});
prec.dynamic = (value, one) => ({{ ...prec(value, one), type: "PREC_DYNAMIC" }});
Object.assign(global, {{
  prec,
  seq: (...all) => ({{ type: "SEQ", members: all.map(rule) }}),
  choice: (...all) => ({{ type: "CHOICE", members: all.map(rule) }}),
  optional: (one) => choice(one, {{ type: "BLANK" }}),
  repeat: (one) => ({{ type: "REPEAT", content: rule(one) }}),
  repeat1: (one) => ({{ type: "REPEAT1", content: rule(one) }}),
  field: (name, one) => ({{ type: "FIELD", name, content: rule(one) }}),
  alias: (one, as) => ({{ type: "ALIAS", content: rule(one), named: true, value: as.name }}),
  grammar: (one) => one,
}});
const made = require({json.dumps(str(ROOT / "editors/tree-sitter-tegula/grammar.js"))});
const names = (all) => all.map((one) => one.name);
console.log(JSON.stringify({{
  ...made,
  word: made.word($).name,
  rules: Object.fromEntries(Object.entries(made.rules).map(([name, one]) => [name, rule(one($))])),
  extras: made.extras($).map(rule),
  conflicts: made.conflicts($).map(names),
  supertypes: names(made.supertypes($)),
  precedences: [], externals: [], inline: [],
}}));
"""
        told = subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout
        self.assertEqual(json.loads(told), json.loads((ROOT / "editors/tree-sitter-tegula/src/grammar.json").read_text()))

    def test_words_have_theirs(self):
        found = set(colours("schedule { tile i=128 }"))
        for path in PROGRAMS:
            found |= set(colours(path.read_text()))
        for scope, word in (("keyword.control.tegula", "for"), ("keyword.control.tegula", "tiles"), ("keyword.other.tegula", "parallel"),
                            ("keyword.other.tegula", "state"), ("keyword.other.tegula", "where"), ("keyword.other.tegula", "schedule"),
                            ("support.function.builtin.tegula", "where"), ("support.function.builtin.tegula", "softmax"),
                            ("support.function.library.tegula", "gelu"), ("support.type.tegula", "f32"), ("support.type.tegula", "int"),
                            ("constant.language.tegula", "inf"), ("keyword.operator.tegula", "//"),
                            ("constant.numeric.float.tegula", "1e-5"), ("punctuation.tegula", "...")):
            self.assertTrue((scope, word) in found, (scope, word))
        for scope, text in found:
            if scope.startswith("comment"):
                self.assertTrue(text.startswith("#"))
            if scope.startswith("keyword.other"):
                self.assertNotIn(text, ("max", "min"))
            self.assertFalse(scope.startswith("invalid"), text)
        self.assertEqual([scope for scope, _ in colours("kernel where(x: f32[N])")][0], "meta.definition.tegula")
        self.assertIn(("variable.other.tegula", "state"), set(colours("y[i] = state[i] + 1")))

    def test_the_extension_names_what_is_there(self):
        package = json.loads((FOLDER / "package.json").read_text())
        parts = package["contributes"]
        for path in (package["main"], parts["languages"][0]["configuration"], parts["grammars"][0]["path"]):
            self.assertTrue((FOLDER / path).is_file(), path)
        self.assertEqual(parts["languages"][0]["extensions"], [".tgl"])
        version = re.search(r"project\(Tegula VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertEqual(package["version"], version)
        self.assertEqual(json.loads((ROOT / "editors/tree-sitter-tegula/tree-sitter.json").read_text())["metadata"]["version"], version)
        # The settings are those that the server reads, and the command.
        read = re.findall(r'getString\("(\w+)"\)', (ROOT / "driver/Lsp.cpp").read_text())
        self.assertEqual({f"tegula.{name}" for name in [*read, "command"]}, set(parts["configuration"]["properties"]))

    def test_the_extension_starts_the_server(self):
        node = shutil.which("node")
        if not node:  # an editor brings its own
            return
        script = f"""
const Module = require("module"), told = [];
const config = {{ command: "/bin/tegula", target: "sm_90a", machine: "", sizes: "M=4" }};
const fakes = {{
  vscode: {{ workspace: {{ getConfiguration: () => ({{ get: (name) => config[name] }}) }},
            commands: {{ registerCommand: (name, run) => (fakes.restart = run, name) }} }},
  "vscode-languageclient/node": {{ LanguageClient: class {{
    constructor(id, name, server, client) {{ told.push([id, server, client.initializationOptions]); }}
    async start() {{ told.push("start"); }}
    async stop() {{ told.push("stop"); }} }} }} }};
const load = Module._load;
Module._load = (name, ...rest) => fakes[name] ?? load(name, ...rest);
const extension = require({json.dumps(str(FOLDER / "extension.js"))});
(async () => {{
  await extension.activate({{ subscriptions: [] }});
  await fakes.restart();
  await extension.deactivate();
  console.log(JSON.stringify(told));
}})();
"""
        told = json.loads(subprocess.run([node, "-e", script], capture_output=True, text=True, check=True).stdout)
        begin = ["tegula", {"command": "/bin/tegula", "args": ["lsp"]}, {"target": "sm_90a", "machine": "", "sizes": "M=4"}]
        self.assertEqual(told, [begin, "start", "stop", begin, "start", "stop"])


if __name__ == "__main__":
    unittest.main()

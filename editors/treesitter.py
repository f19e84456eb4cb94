#!/usr/bin/env python3
"""Writes the tree-sitter grammar of editors/tree-sitter-tegula from dsl/Tegula.g4: grammar.js, src/grammar.json, and the lists of
queries/highlights.scm.

    editors/treesitter.py [--check | --made]

The rules are those of the language, the lines '//=' of Tegula.g4 among them. The tables below say what Tegula.g4 does not: how
nodes and fields are called, and which rules have no node. `tree-sitter generate` makes src/parser.c of it, and --made records of
which grammar. With --check nothing is written: exit code 1 where a file is old.
"""
import hashlib
import json
import pathlib
import re
import sys
import textwrap

import textmate

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "editors/tree-sitter-tegula"

# Rules whose nodes have other names than theirs in snake_case.
NODES = {
    "file": "source_file", "kernel": "kernel_definition", "function": "function_definition", "sizes": "where_clause",
    "functionParameter": "function_parameter", "let": "let_statement", "precision": "precision_statement",
    "deterministic": "deterministic_statement", "distinct": "distinct_statement", "invariant": "invariant_statement",
    "closing": "schedule_block", "state": "state_declaration", "parallel": "parallel_statement", "loop": "for_statement",
    "trailing": "for_clause", "keyword": "keyword_argument", "access": "subscript_expression", "span": "range", "tiled": "tiles",
}

# Rules without a node: their parts stand in the node around them.
HIDDEN = {
    "definition", "opening", "statement", "targets", "parallelHead", "loopHead", "observed", "scheduleItems", "place", "member", "dim",
    "expression", "conjunction", "inversion", "comparison", "comparator", "bitOr", "bitXor", "bitAnd", "shift", "sum", "product", "factor",
    "power", "atom", "anyCall", "comprehension", "range", "typeName", "name"
}

# A node of its own for each of a rule's alternatives, in their order; None where the alternative is one already.
ALTERNATIVES = {
    "opening": ("precision", "deterministic", "distinct", "invariant"),
    "statement": ("state", "parallel", "loop", None, None, "equation"),
    "inversion": ("unaryNot", None),
    "factor": ("unarySign", None),
}

# Pieces of rules that become rules, so that they are nodes, in the notation of Tegula.g4: the rule, the piece of it, what stands
# there instead, and the new rules. The language stays the same.
PIECES = (
    ("file", "(definition | ';')* EOF", "(definition | ';')*", ""),
    ("kernel", "'{' (opening | ';')* (statement | ';')* (closing ';'*)? '}'", "kernelBlock",
     "kernelBlock : '{' (opening | ';')* (statement | ';')* (closing ';'*)? '}' ;"),
    ("call", "'(' (expression comprehension | expression", "'(' (expression",
     "reduction : name '(' expression comprehension ')' ; anyCall : call | reduction ;"),
    ("statement", "call", "anyCall", ""),
    ("atom", "call", "anyCall", ""),
    ("atom", "name subscripts", "access", "access : name subscripts ;"),
    ("atom", "'(' expression (',' expression)* ','? ')'", "parenthesizedExpression | tuple",
     "parenthesizedExpression : '(' expression ')' ; tuple : '(' expression ',' (expression (',' expression)* ','?)? ')' ;"),
    ("comprehension", "name '=' expression", "keyword", ""),
    ("member", "(expression | group) (IN range)?", "expression | group | binding", "binding : (expression | group) IN range ;"),
    ("loopHead", "TILES '(' range ')'", "tiled", "tiled : TILES '(' range ')' ;"),
    ("comparison", "bitOr (comparator bitOr)*", "comparisonExpression | bitOr",
     "comparisonExpression : bitOr (comparator bitOr)+ ;"),
    ("range", "expression (':' expression)?", "expression | span", "span : expression ':' expression ;"),
    ("parameter", "type=name", "typeName", "typeName : name ;"),
    ("target", "':' name", "':' typeName", ""),
)

# Operators of two operands, the weakest first. A rule is a node where it has an operator; without one it is its operand.
BINARY = ("expression", "conjunction", "bitOr", "bitXor", "bitAnd", "shift", "sum", "product", "power")

# Rules that share a node's name with others.
SHARED = {f"{rule}Operation": "binary_expression" for rule in BINARY} | {
    "unaryNot": "unary_expression", "unarySign": "unary_expression", "kernelBlock": "block", "places": "subscripts"}

# Names of what a node holds, by its symbol or word in the rule.
FIELDS = {
    "kernel": {"name": "name", "parameters": "parameters", "outputs": "outputs", "sizes": "sizes", "kernelBlock": "body"},
    "sizeDefinition": {"name": "name", "expression": "value"},
    "parameter": {"name": "name", "typeName": "type", "dims": "dims", "expression": "default"},
    "function": {"name": "name", "expression": "value", "functionBlock": "body"},
    "functionParameter": {"name": "name", "expression": "default"},
    "functionBlock": {"expression": "value"},
    "let": {"name": "name", "expression": "value"},
    "precision": {"name": "value"},
    "invariant": {"name": "size"},
    "state": {"target": "target", "expression": "value", "trailing": "trailing"},
    "parallel": {"block": "body"},
    "loop": {"block": "body"},
    "loopHead": {"name": "index", "tiled": "range", "range": "range"},
    "binder": {"name": "index", "range": "range"},
    "targets": {"target": "target"},
    "equation": {"max": "combine", "min": "combine", "expression": "value", "trailing": "trailing"},
    "target": {"name": "name", "typeName": "type", "places": "subscripts"},
    "forItem": {"name": "index", "range": "range", "expression": "condition"},
    "scheduleItem": {"name": "name"},
    "setting": {"name": "name", "expression": "value"},
    "access": {"name": "name", "subscripts": "subscripts"},
    "binding": {"expression": "index", "group": "index", "range": "range"},
    "call": {"name": "function", "expression": "argument", "keyword": "argument"},
    "reduction": {"name": "function", "expression": "value"},
    "keyword": {"name": "name", "expression": "value"},
    "comparisonExpression": {"bitOr": "operand", "comparator": "operator"},
    "unaryNot": {"not": "operator", "inversion": "operand"},
    "unarySign": {"-": "operator", "+": "operator", "~": "operator", "factor": "operand"},
}

# Where the next token does not tell how to go on, so that the parser tries both.
CONFLICTS = (
    # A word of the language, or a name: `parallel max in M { }`, `parallel max= e`.
    ("_name", "_parallel_head"),
    ("_name", "state_declaration"),
    ("_name", "precision_statement"),
    ("_name", "deterministic_statement"),
    ("_name", "distinct_statement"),
    ("_name", "invariant_statement"),
    ("_name", "observation"),
    ("_name", "tiles"),
    # `y = e for t in T`, `y = e` and a loop.
    ("equation",),
    ("state_declaration",),
    # `persistent stages 4`, `tile i=128`.
    ("schedule_item",),
    # `x[(a, b)]`, `x[(a, b) + 1]`, which has a meaning for the grammar alone.
    ("_member", "tuple"),
    # The last string of `assert(c, "text")` is both.
    ("observation", "_observed"),
)

# Which of two readings of a text is taken, as the compiler's parser takes its first alternative.
PREFERRED = ("state", "deterministic", "observation", "tiled", "group")

TOKEN = re.compile(r"'(?:\\.|[^'\\])*'|\[(?:\\.|[^\]\\])*\]|//[^\n]*|#\s*\w+|\w+|->|\S")


def tokens(text):
    """Of the notation of Tegula.g4, without comments and labels of alternatives."""
    return [one for one in TOKEN.findall(text) if not one.startswith(("//", "#"))]


def plain(text):
    return " ".join(tokens(text))


def read_rules(text):
    """Each rule's name and what follows its colon, a blank between tokens."""
    found, rule = {}, []
    for token in tokens(text):
        if token != ";":
            rule.append(token)
            continue
        if rule[0] == "fragment":
            rule = rule[1:]
        if rule[1] == ":":
            found[rule[0]] = " ".join(rule[2:]).split(" -> ")[0]
        rule = []
    return found


def shaped_rules(grammar):
    """The rules of Tegula.g4 as the tables shape them."""
    exact = "\n".join(re.findall(r"^//= ?(.*)$", grammar, re.M))
    rules = read_rules(grammar) | read_rules(exact)
    for rule, piece, instead, more in PIECES:
        assert rules[rule].count(plain(piece)) == 1, f"{rule} of Tegula.g4 has changed: editors/treesitter.py looks for {piece}"
        rules[rule] = rules[rule].replace(plain(piece), plain(instead))
        rules |= read_rules(more)
    for rule, names in ALTERNATIVES.items():
        alternatives = split(rules[rule])
        assert len(alternatives) == len(names), f"{rule} of Tegula.g4 has other alternatives than editors/treesitter.py names"
        rules |= {name: text for name, text in zip(names, alternatives) if name}
        rules[rule] = " | ".join(name or text for name, text in zip(names, alternatives))
    for rule in BINARY:
        first, operator, second, mark = re.fullmatch(r"(\w+) \( (.*) (\w+) \) ([*?])", rules[rule]).groups()
        rules[rule] = f"{rule}Operation | {first}"
        rules[f"{rule}Operation"] = f"{rule if mark == '*' else first} {operator} {second}"
    unknown = {*NODES, *HIDDEN, *SHARED, *FIELDS, *PREFERRED} - rules.keys()
    assert not unknown, f"editors/treesitter.py names rules that Tegula.g4 does not have: {sorted(unknown)}"
    return rules


def fields_of(rule, rules):
    """Names of what a rule's node holds."""
    if SHARED.get(rule) != "binary_expression":
        return FIELDS.get(rule, {})
    left, *operators, right = re.findall(r"\w+|'[^']+'", rules[rule])
    return {left: "left", right: "right"} | {read_literal(one, rules): "operator" for one in operators}


def read_literal(token, rules):
    """The text of a literal, or of the rule of a word; None where it is another rule."""
    if token[0] != "'":
        token = rules[token]
    found = re.fullmatch(r"'((?:\\.|[^'\\])*)'", token)
    return re.sub(r"\\(.)", r"\1", found[1]) if found else None


def split(text):
    """The alternatives of a rule."""
    parts, depth = [[]], 0
    for token in tokens(text):
        depth += (token == "(") - (token == ")")
        if token == "|" and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [" ".join(part) for part in parts]


def string(value):
    return {"type": "STRING", "value": value}


def symbol(name):
    return {"type": "SYMBOL", "name": name}


def seq(*members):
    return members[0] if len(members) == 1 else {"type": "SEQ", "members": list(members)}


def choice(*members):
    return members[0] if len(members) == 1 else {"type": "CHOICE", "members": list(members)}


def optional(content):
    return choice(content, {"type": "BLANK"})


def field(name, content):
    return {"type": "FIELD", "name": name, "content": content}


def alias(content, name):
    return {"type": "ALIAS", "content": content, "named": True, "value": name}


class Notation:
    """Reads a rule's text as a rule of grammar.json, whose symbols are still called as in Tegula.g4."""

    def __init__(self, name, rules):
        self.rest, self.rules = tokens(rules[name]), rules

    def choice(self):
        members = [self.sequence()]
        while self.rest and self.rest[0] == "|":
            self.rest.pop(0)
            members.append(self.sequence())
        return choice(*members)

    def sequence(self):
        members = []
        while self.rest and self.rest[0] not in "|)":
            members.append(self.repeated())
        # What two neighbouring lists may both hold belongs to the first.
        for one, other in zip(members, members[1:]):
            if one["type"] == other["type"] == "REPEAT" and string(";") in one["content"].get("members", ()):
                one["content"] = {"type": "PREC", "value": 1, "content": one["content"]}
        return seq(*members)

    def repeated(self):
        part = self.part()
        mark = self.rest.pop(0) if self.rest and self.rest[0] in "?*+" else ""
        if mark == "?":
            return optional(part)
        return {"type": {"*": "REPEAT", "+": "REPEAT1"}[mark], "content": part} if mark else part

    def part(self):
        token = self.rest.pop(0)
        if token == "(":
            part = self.choice()
            assert self.rest.pop(0) == ")", self.rest
            return part
        literal = read_literal(token, self.rules)
        return string(literal) if literal else symbol(token)


def regex(name, rules):
    """A rule of the lexer as a regular expression."""
    result = ""
    for token in tokens(rules[name]):
        if token[0] == "'":
            result += re.sub(r"[.+*?|\\()\[\]{}^$/]", r"\\\g<0>", read_literal(token, rules))
        else:
            result += f"({regex(token, rules)})" if token.isupper() else token
    return result.replace("~[", "[^")


class Grammar:
    def __init__(self, text):
        self.texts, self.rules = shaped_rules(text), {}
        self.add("file")

    def shown(self, name):
        """A rule's name in grammar.json."""
        if name.isupper():
            return name.lower()
        shown = NODES.get(name) or re.sub("[A-Z]", lambda found: "_" + found[0].lower(), name)
        return "_" + shown if name in HIDDEN or name in SHARED else shown

    def add(self, name):
        """A rule, and after it those that it needs."""
        self.rules[self.shown(name)] = None
        used = []
        if name.isupper():
            tree = {"type": "PATTERN", "value": regex(name, self.texts)}
        else:
            tree = self.finished(Notation(name, self.texts).choice(), fields_of(name, self.texts), used)
        if name == "name":  # words that are names look like other names
            first, *words = tree["members"]
            tree = choice(first, alias(choice(*words), "identifier"))
        if name in PREFERRED:
            tree = {"type": "PREC_DYNAMIC", "value": 1, "content": tree}
        self.rules[self.shown(name)] = tree
        for other in used:
            if self.shown(other) not in self.rules:
                self.add(other)

    def finished(self, tree, fields, used):
        """A rule with its fields and the names of nodes. `used` gets the symbols in it, as Tegula.g4 calls them."""
        key = tree.get("name") or tree.get("value")
        if tree["type"] == "SYMBOL":
            used.append(key)
            tree = symbol(self.shown(key))
            tree = alias(tree, SHARED[key]) if key in SHARED else tree
        elif "members" in tree:
            return tree | {"members": [self.finished(one, fields, used) for one in tree["members"]]}
        elif "content" in tree:
            return tree | {"content": self.finished(tree["content"], fields, used)}
        return field(fields[key], tree) if key in fields else tree

    def json(self):
        comment = {"type": "PATTERN", "value": regex("COMMENT", self.texts)}
        return {
            "name": "tegula",
            "word": "identifier",
            "rules": self.rules | {"comment": comment},
            "extras": [{"type": "PATTERN", "value": regex("BLANK", self.texts)}, symbol("comment")],
            "conflicts": [list(names) for names in CONFLICTS],
            "precedences": [],
            "externals": [],
            "inline": [],
            "supertypes": ["_definition", "_statement", "_expression"],
        }


def javascript(tree):
    """A rule as grammar.js says it."""
    kind = tree["type"]
    if kind == "SYMBOL":
        return "$." + tree["name"]
    if kind == "STRING":
        return json.dumps(tree["value"])
    if kind == "PATTERN":
        return f"/{tree['value']}/"
    if kind == "FIELD":
        return call("field", [json.dumps(tree["name"]), javascript(tree["content"])])
    if kind == "ALIAS":
        return call("alias", [javascript(tree["content"]), "$." + tree["value"]])
    if kind in ("PREC", "PREC_DYNAMIC"):
        return call(kind.lower().replace("_", "."), [str(tree["value"]), javascript(tree["content"])])
    if kind in ("REPEAT", "REPEAT1"):
        return call(kind.lower(), [javascript(tree["content"])])
    if kind == "CHOICE" and tree["members"][-1]["type"] == "BLANK":
        return call("optional", [javascript(tree["members"][0])])
    return call(kind.lower(), [javascript(one) for one in tree["members"]])


def call(name, arguments):
    """On one line where it fits."""
    line = f"{name}({', '.join(arguments)})"
    if len(line) <= 100 and "\n" not in line:
        return line
    return f"{name}(\n" + "".join("  " + one.replace("\n", "\n  ") + ",\n" for one in arguments) + ")"


def grammar_js(grammar):
    def names(rows):
        return "".join(f"    [{', '.join('$.' + name for name in row)}],\n" for row in rows)

    extras = ", ".join(map(javascript, grammar["extras"]))
    rules = ""
    for name, tree in grammar["rules"].items():
        body = javascript(tree).replace("\n", "\n    ")
        rules += f"    {name}: $ => {body},\n"
    return ("// Made by editors/treesitter.py from dsl/Tegula.g4.\n"
            "module.exports = grammar({\n"
            f"  name: {json.dumps(grammar['name'])},\n\n"
            f"  word: $ => $.{grammar['word']},\n\n"
            f"  extras: $ => [{extras}],\n\n"
            f"  conflicts: $ => [\n{names(grammar['conflicts'])}  ],\n\n"
            f"  supertypes: $ => [{', '.join('$.' + name for name in grammar['supertypes'])}],\n\n"
            f"  rules: {{\n{rules}  }},\n"
            "});\n")


def highlights(text):
    """queries/highlights.scm with the types and functions of the compiler."""
    for capture, names in (("type.builtin", textmate.types()), ("function.builtin", textmate.builtin_functions())):
        lines = textwrap.wrap(" ".join(f'"{name}"' for name in sorted(names)), 100)
        before = re.escape(f"(#any-of? @{capture}\n")
        text, count = re.subn(rf"({before})[^)]*", lambda found: found[1] + "\n".join("    " + line for line in lines), text)
        assert count >= 1, f"highlights.scm has no list of @{capture}"
    return text


def sums():
    """What `tree-sitter generate` read, and what it wrote: a line each, as sha256sum prints it."""
    names = ("src/grammar.json", "src/node-types.json", "src/parser.c")
    return "".join(f"{hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()}  {name}\n" for name in names)


def main():
    grammar = Grammar((ROOT / "dsl/Tegula.g4").read_text()).json()
    texts = {
        "grammar.js": grammar_js(grammar),
        # The generator ends what it makes of grammar.js with an empty line.
        "src/grammar.json": json.dumps(grammar, indent=2, ensure_ascii=False) + "\n\n",
        "queries/highlights.scm": highlights((FOLDER / "queries/highlights.scm").read_text()),
    }
    if sys.argv[1:] == ["--check"]:
        old = [name for name, text in texts.items() if not (FOLDER / name).exists() or (FOLDER / name).read_text() != text]
        if old:
            sys.exit(f"{', '.join(old)} of {FOLDER.relative_to(ROOT)}: old; editors/treesitter.py writes them")
        if (FOLDER / "generated.sha256").read_text() != sums():
            sys.exit(f"{FOLDER.relative_to(ROOT)}/src/parser.c is not made of src/grammar.json: its README.md says how it is made")
    elif sys.argv[1:] == ["--made"]:
        (FOLDER / "generated.sha256").write_text(sums())
    else:
        for name, text in texts.items():
            (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()

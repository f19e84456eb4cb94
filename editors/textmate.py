#!/usr/bin/env python3
"""Writes editors/vscode/syntaxes/tegula.tmLanguage.json: the colours of an editor, from the grammar and the tables of functions.

    editors/textmate.py [--check]

Words, operators, numbers and comments are those of dsl/Tegula.g4, types those of ir/DTypes.cpp, functions those of
dsl/Builtins.def and dsl/std. With --check nothing is written: exit code 1 where the file is not what this would write.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
OUT = ROOT / "editors/vscode/syntaxes/tegula.tmLanguage.json"


def tokens(grammar):
    """The rules of the lexer: name to text."""
    return dict(re.findall(r"^(?:fragment )?([A-Z]+) : (.*?)(?: -> .*)? ;$", grammar, re.M))


def regex(rule, rules):
    """A rule of ANTLR as a regular expression."""
    result = ""
    for literal, negated, chars, name, other in re.findall(r"'((?:\\.|[^'\\])*)'|(~?)(\[(?:\\.|[^\]\\])*\])|([A-Z]+)|(\S)", rule):
        if chars:
            result += "[^" + chars[1:] if negated else chars
        elif name:
            result += f"(?:{regex(rules[name], rules)})"
        elif other:
            result += other
        else:
            result += re.escape(literal.replace("\\'", "'").replace("\\\\", "\\"))
    return result


def words(names):
    return "|".join(sorted(names, key=lambda one: (-len(one), one)))


def pattern(scope, match, **captures):
    return {"name": scope, "match": match} | ({"captures": {key[1:]: {"name": value} for key, value in captures.items()}} if captures else {})


def types():
    return set(re.findall(r'"([fiu][0-9]\w*|bf16|bool)"', (ROOT / "ir/DTypes.cpp").read_text())) | {"int", "float"}


def builtin_functions():
    return set(re.findall(r"^TEGULA_BUILTIN\((\w+),", (ROOT / "dsl/Builtins.def").read_text(), re.M))


def grammar():
    text = (ROOT / "dsl/Tegula.g4").read_text()
    rules = tokens(text)
    # Words that are never names, and words that are names where a name can stand.
    first, second = (re.findall(r"^[A-Z]+ : '([a-z]+)' ;", part, re.M)
                     for part in text.split("// Words of the language.")[1].split("// Words of the language that are names elsewhere."))
    operators = [rule[1:-1] for rule in rules.values() if re.fullmatch(r"'[^'\w(){}\[\],:;.]+'", rule)]
    builtin = builtin_functions()
    library = [name for file in sorted((ROOT / "dsl/std").glob("*.tgl"))
               for name in re.findall(r"^(?:fn|kernel) ([a-z]\w*)\(", file.read_text(), re.M)]
    logical = [one for one in first if one in ("and", "or", "not")]
    control = [one for one in first if one not in logical]
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "comment": "Made by editors/textmate.py",
        "name": "Tegula",
        "scopeName": "source.tegula",
        "fileTypes": ["tgl"],
        "patterns": [
            pattern("comment.line.number-sign.tegula", regex(rules["COMMENT"], rules)),
            pattern("string.quoted.tegula", regex(rules["STRING"], rules)),
            pattern("meta.definition.tegula", rf"\b(kernel|fn)\s+({regex(rules['IDENTIFIER'], rules)})(?=\s*\()",
                    _1="storage.type.tegula", _2="entity.name.function.tegula"),
            pattern("support.function.builtin.tegula", rf"\b(?:{words(builtin)})\b(?=\s*\()"),
            pattern("support.function.library.tegula", rf"\b(?:{words(set(library) - builtin)})\b(?=\s*\()"),
            pattern("keyword.control.tegula", rf"\b(?:{words(control)})\b"),
            pattern("keyword.operator.logical.tegula", rf"\b(?:{words(logical)})\b"),
            pattern("keyword.control.tegula", r"(?<=\bin )tiles\b(?=\s*\()"),
            pattern("keyword.other.tegula", r"(?:^|(?<=[{;]))\s*(?:print|assert)\b(?=\s*\()"),
            # Followed by a name or a block they are no names themselves.
            pattern("keyword.other.tegula", rf"\b(?:{words(set(second) - {'max', 'min', 'print', 'assert'})})\b(?=\s+[A-Za-z_]|\s*\{{|\s*$)"),
            pattern("support.type.tegula", rf"\b(?:{words(types())})\b"),
            pattern("constant.language.tegula", r"\b(?:true|false|inf|nan|pi)\b"),
            pattern("variable.parameter.tegula", rf"(?<=[(,] ){regex(rules['IDENTIFIER'], rules)}(?=\s*=(?!=))"),
            pattern("entity.name.function.call.tegula", rf"\b{regex(rules['IDENTIFIER'], rules)}(?=\s*\()"),
            pattern("variable.other.tegula", rf"\b{regex(rules['IDENTIFIER'], rules)}"),
            pattern("constant.numeric.float.tegula", regex(rules["FLOAT"], rules)),
            pattern("constant.numeric.integer.tegula", regex(rules["INTEGER"], rules)),
            pattern("keyword.operator.tegula", "|".join(map(re.escape, sorted(operators, key=lambda one: (-len(one), one))))),
            pattern("punctuation.tegula", r"\.\.\.|[(){}\[\],:;]"),
        ],
    }


def main():
    text = json.dumps(grammar(), indent=2) + "\n"
    if sys.argv[1:] == ["--check"]:
        if not OUT.exists() or OUT.read_text() != text:
            sys.exit(f"{OUT.relative_to(ROOT)} is old: editors/textmate.py writes it")
    else:
        OUT.write_text(text)


if __name__ == "__main__":
    main()

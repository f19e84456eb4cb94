"""Colours for Tegula in what Pygments shows: Jupyter, Sphinx, MkDocs, `pygmentize -l tegula`. The words are those of
dsl/Tegula.g4, as a test compares.
"""
from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

KEYWORDS = ("for", "in", "if", "return", "kernel", "fn", "parallel", "state", "tiles", "precision", "schedule", "reverse",
            "deterministic", "distinct", "invariant", "inout", "where")
WORD_OPERATORS = ("and", "or", "not")
BUILTINS = ("max", "min", "print", "assert")  # which also name how a statement combines, or what it does
TYPES = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "i4", "u4",
         "bool", "int", "float")


class TegulaLexer(RegexLexer):
    name = "Tegula"
    aliases = ["tegula", "tgl"]
    filenames = ["*.tgl"]
    tokens = {
        "root": [
            (r"[ \t\r\n\f\u00a0\ufeff]+", Whitespace),
            (r"#[^\r\n]*", Comment.Single),
            (r"(kernel|fn)([ \t]+)([A-Za-z_]\w*)", lambda lexer, match: iter((
                (match.start(1), Keyword, match[1]), (match.start(2), Whitespace, match[2]),
                (match.start(3), Name.Function, match[3])))),
            (words(KEYWORDS, prefix=r"\b", suffix=r"\b"), Keyword),
            (words(WORD_OPERATORS, prefix=r"\b", suffix=r"\b"), Operator.Word),
            (words(TYPES, prefix=r"\b", suffix=r"\b"), Keyword.Type),
            (words(("true", "false"), prefix=r"\b", suffix=r"\b"), Keyword.Constant),
            (r"[A-Za-z_]\w*(?=\()", Name.Builtin),
            (r"[A-Za-z_]\w*", Name),
            (r"0[xX][0-9a-fA-F]+", Number.Hex),
            (r"0[bB][01]+", Number.Bin),
            (r"[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+", Number.Float),
            (r"[0-9]+", Number.Integer),
            (r'"[^"\r\n]*"?|\'[^\'\r\n]*\'?', String),
            (r"\.\.\.|->|[(){}\[\],:;]", Punctuation),
            (r"\*\*|//|<<|>>|[<>=!]=|\+=|[-+*/%<>=&|^~]", Operator),
        ],
    }

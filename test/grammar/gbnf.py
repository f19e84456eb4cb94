"""A small reader of GBNF: recognises texts, and makes them up."""
import functools
import re

TOKEN = re.compile(
    r'\s*(?:(?P<rule>[a-z][a-z0-9-]*)\s*::=|(?P<name>[a-z][a-z0-9-]*)|"(?P<text>(?:[^"\\]|\\.)*)"'
    r"|\[(?P<set>(?:[^\]\\]|\\.)*)\]|(?P<mark>[()|*+?]))")
ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|(.))")


def characters(text):
    """The characters of a literal or a set, and for each whether it was written with a backslash."""
    result, at = [], 0
    while at < len(text):
        found = ESCAPE.match(text, at)
        if not found:
            result.append((text[at], False))
            at += 1
            continue
        two, four, one = found.groups()
        result.append((chr(int(two or four, 16)) if one is None else {"n": "\n", "r": "\r", "t": "\t"}.get(one, one), True))
        at = found.end()
    return result


class Grammar:
    """Pieces are tuples: ("text", s), ("set", negated, ((first, last), ...)), ("name", n), ("all", pieces),
    ("any", pieces), ("repeat", piece, least, most)."""

    def __init__(self, text):
        self.rules = {}
        for line in text.splitlines():
            if line.strip() and not line.startswith("#"):
                self._rule(line)
        self._measure()

    def _rule(self, line):
        tokens, at = [], 0
        while at < len(line):
            found = TOKEN.match(line, at)
            assert found and found.end() > at, f"cannot read GBNF at: {line[at:at + 40]}"
            tokens.append((found.lastgroup, found.group(found.lastgroup)))
            at = found.end()
        assert tokens[0][0] == "rule" and tokens[0][1] not in self.rules, line[:60]
        piece, rest = self._choice(tokens[1:])
        assert not rest, f"cannot read GBNF: {rest[:3]}"
        self.rules[tokens[0][1]] = piece

    def _choice(self, tokens):
        alternatives = []
        while True:
            parts = []
            while tokens and tokens[0] not in (("mark", "|"), ("mark", ")")):
                part, tokens = self._part(tokens)
                parts.append(part)
            alternatives.append(parts[0] if len(parts) == 1 else ("all", tuple(parts)))
            if not tokens or tokens[0] != ("mark", "|"):
                return (alternatives[0] if len(alternatives) == 1 else ("any", tuple(alternatives))), tokens
            tokens = tokens[1:]

    def _part(self, tokens):
        (kind, text), tokens = tokens[0], tokens[1:]
        if kind == "mark":
            assert text == "(", text
            piece, tokens = self._choice(tokens)
            assert tokens[0] == ("mark", ")")
            tokens = tokens[1:]
        elif kind == "text":
            piece = ("text", "".join(c for c, _ in characters(text)))
        elif kind == "set":
            piece = self._set(text)
        else:
            piece = ("name", text)
        if tokens and tokens[0] in (("mark", "*"), ("mark", "+"), ("mark", "?")):
            mark = tokens[0][1]
            piece = ("repeat", piece, 1 if mark == "+" else 0, 1 if mark == "?" else None)
            tokens = tokens[1:]
        return piece, tokens

    @staticmethod
    def _set(text):
        negated = text.startswith("^")
        items, ranges = characters(text[negated:]), []
        while items:
            if len(items) > 2 and items[1] == ("-", False):
                ranges.append((items[0][0], items[2][0]))
                items = items[3:]
            else:
                ranges.append((items[0][0], items[0][0]))
                items = items[1:]
        return ("set", negated, tuple(ranges))

    # Recognition: where may a piece end that begins here? No rule begins with itself.

    def accepts(self, text):
        @functools.lru_cache(maxsize=None)
        def ends(piece, at):
            kind = piece[0]
            if kind == "text":
                return (at + len(piece[1]),) if text.startswith(piece[1], at) else ()
            if kind == "set":
                inside = at < len(text) and any(a <= text[at] <= b for a, b in piece[2])
                return (at + 1,) if at < len(text) and inside != piece[1] else ()
            if kind == "name":
                return ends(self.rules[piece[1]], at)
            if kind == "any":
                return tuple({end for part in piece[1] for end in ends(part, at)})
            if kind == "all":
                here = {at}
                for part in piece[1]:
                    here = {end for start in here for end in ends(part, start)}
                return tuple(here)
            _, body, least, most = piece
            found, here, count = ({at} if least == 0 else set()), {at}, 0
            while here and (most is None or count < most):
                here = {end for start in here for end in ends(body, start)} - found
                found |= here
                count += 1
            return tuple(found)

        return len(text) in ends(("name", "root"), 0)

    # Sampling.

    def _measure(self):
        """For each rule how deep its shallowest derivation is."""
        self.depth = {name: 1000 for name in self.rules}
        changed = True
        while changed:
            changed = False
            for name, piece in self.rules.items():
                depth = 1 + self._depth(piece)
                if depth < self.depth[name]:
                    self.depth[name], changed = depth, True

    def _depth(self, piece):
        kind = piece[0]
        if kind == "name":
            return self.depth[piece[1]]
        if kind == "any":
            return min(self._depth(part) for part in piece[1])
        if kind == "all":
            return max((self._depth(part) for part in piece[1]), default=0)
        if kind == "repeat":
            return self._depth(piece[1]) if piece[2] else 0
        return 0

    def sample(self, random, size=200, least=30):
        """A text of at least `least` characters; after about `size` rules it comes to its end."""
        left = size

        def make(piece):
            nonlocal left
            kind = piece[0]
            if kind == "text":
                return piece[1]
            if kind == "set":
                return self._character(piece, random)
            if kind == "name":
                if piece[1] == "free" and random.random() < 0.6:
                    return ""
                if piece[1] in ("free", "blank") and random.random() < 0.9:
                    return random.choice([" ", " ", " ", "\n"])
                left -= 1
                return make(self.rules[piece[1]])
            if kind == "any":
                return make(random.choice(piece[1]) if left > 0 else min(piece[1], key=self._depth))
            if kind == "all":
                return "".join(make(part) for part in piece[1])
            _, body, low, high = piece
            texts = [make(body) for _ in range(low)]
            while (high is None or len(texts) < high) and left > 0 and random.random() < 0.4:
                texts.append(make(body))
            return "".join(texts)

        while True:
            left = size
            text = make(("name", "root"))
            if len(text) >= least:
                return text

    @staticmethod
    def _character(piece, random):
        _, negated, ranges = piece
        if not negated:
            first, last = random.choice(ranges)
            return chr(random.randint(ord(first), ord(last)))
        while True:
            c = random.choice([chr(random.randint(0x20, 0x7E)), random.choice("äλ⊙")])
            if not any(first <= c <= last for first, last in ranges):
                return c

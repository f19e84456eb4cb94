#!/usr/bin/env python3
"""Repeats the proofs of `tegula prove --safe`, with nothing of the compiler's.

    test/prove/replay_safe.py BUILD FILE.tgl... [-- OPTIONS of tegula prove]

A record (docs/prove.md) is right where each access of the IR has an entry, each entry's goals are what its subscripts and
the tensor's dims say, each hypothesis follows from a size, a range, a guard or a quotient, and each proof's steps are
identities of polynomials over integers. No step searches. Then records are spoiled in many places, and each of them must be
refused.
"""
import argparse
import ast
import copy
import json
import pathlib
import random
import re
import subprocess
import sys


class Wrong(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Wrong(text)


# Polynomials: {monomial: coefficient}, a monomial being a sorted tuple of names.


def number(value):
    return {(): value} if value else {}


def add(a, b, factor=1):
    result = dict(a)
    for monomial, coefficient in b.items():
        result[monomial] = result.get(monomial, 0) + factor * coefficient
        if not result[monomial]:
            del result[monomial]
    return result


def sub(a, b):
    return add(a, b, -1)


def mul(a, b):
    result = {}
    for m, x in a.items():
        for n, y in b.items():
            key = tuple(sorted(m + n))
            result[key] = result.get(key, 0) + x * y
    return {m: c for m, c in result.items() if c}


def poly(text):
    """Of `3*C*q - 1`."""
    result, sign = {}, 1
    for word in re.split(r" ([+-]) ", text):
        if word in "+-":
            sign = 1 if word == "+" else -1
            continue
        negative = word.startswith("-")
        coefficient, names = -sign if negative else sign, []
        for factor in word[negative:].split("*"):
            if factor.isdigit():
                coefficient *= int(factor)
            else:
                names.append(factor)
        result = add(result, {tuple(sorted(names)): coefficient})
    return result


class Entry:
    """One access and what is known at it."""

    def __init__(self, record, sizes, guards):
        self.record, self.guards = record, guards
        self.variables = {one["name"]: one for one in record["variables"]}
        need(len(self.variables) == len(record["variables"]), "a variable is there twice")
        self.bound = {name for name, text in sizes if re.fullmatch(r"\d+ : \d+", text)}
        self.defined = {}
        for name, text in sizes:
            if name not in self.bound:
                given = {one["name"]: one["is"] for one in record["defined"]}
                self.defined[name] = poly(given[name])
                need(self.formula(text) == self.defined[name], f"{name} is defined otherwise")
        self.ranges = {}
        self.hypotheses = {number: one for number, one in record["hypotheses"].items()}
        self.checked = set()

    def of(self, name):
        return [poly(one) for one in self.variables[name]["of"]]

    def formula(self, text, dims={}):
        """The polynomial of an integer expression of the language."""
        return self.walk(ast.parse(text.strip(), mode="eval").body, dims)

    def walk(self, node, dims):
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return number(node.value)
        if isinstance(node, (ast.Name, ast.Constant)):
            name = node.id if isinstance(node, ast.Name) else node.value
            if name in dims:
                return dims[name]
            return self.defined[name] if name in self.defined else {(name,): 1}
        if isinstance(node, ast.UnaryOp):
            need(isinstance(node.op, ast.USub), "an operator is not known")
            return sub({}, self.walk(node.operand, dims))
        if isinstance(node, ast.BinOp):
            a, b = self.walk(node.left, dims), self.walk(node.right, dims)
            if isinstance(node.op, ast.Add):
                return add(a, b)
            if isinstance(node.op, ast.Sub):
                return sub(a, b)
            if isinstance(node.op, ast.Mult):
                return mul(a, b)
            if isinstance(node.op, ast.Pow):
                result = number(1)
                for _ in range(node.right.value):
                    result = mul(result, a)
                return result
            if isinstance(node.op, ast.FloorDiv):
                if set(b) == {()} and b[()] < 0:
                    a, b = sub({}, a), sub({}, b)
                return self.variable("quotient", [a, b])
            if isinstance(node.op, ast.Mod):
                return sub(a, mul(b, self.variable("quotient", [a, b])))
        need(isinstance(node, ast.Call), "an expression is not known")
        if node.func.id == "where":
            compare = node.args[0]
            sign = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<="}[type(compare.ops[0])]
            operands = [compare.left, compare.comparators[0], *node.args[1:]]
            return self.variable("where", [self.walk(one, dims) for one in operands], sign)
        return self.variable(node.func.id, [self.walk(one, dims) for one in node.args])

    def variable(self, kind, operands, sign=None):
        for name, one in self.variables.items():
            if one["kind"] == kind and self.of(name) == operands and one.get("compares") == sign:
                return {(name,): 1}
        raise Wrong(f"no variable is the {kind} that an expression has")

    # Hypotheses.

    def holds(self, key, scope):
        """The polynomial of a hypothesis, which is not negative."""
        need(key in scope, f"hypothesis {key} is not there")
        one = scope[key]
        if (key, id(one)) not in self.checked:
            self.checked.add((key, id(one)))
            self.check(poly(one["is"]), one["from"], {k: v for k, v in scope.items() if k != key})
        return poly(one["is"])

    def check(self, is_, why, scope):
        if why.keys() == {"size"}:
            need(why["size"] in self.bound and is_ == {(why["size"],): 1}, "a size is not what its hypothesis says")
        elif "axis" in why:
            self.check_axis(is_, why)
        elif "tile" in why:
            low, high = map(poly, why["tile"])
            length = sub(high, low)
            need(is_ in (sub(length, number(1)), sub(number(why["size"]), length)), "a tile has no such bound")
        elif "quotient" in why:
            top, under = self.of(why["quotient"])
            rest = sub(top, mul(under, {(why["quotient"],): 1}))
            need(self.variables[why["quotient"]]["kind"] == "quotient", "no quotient")
            need(is_ in (rest, sub(sub(under, number(1)), rest)), "a quotient has no such bound")
            need(self.goal(why["denominator"], scope) == sub(under, number(1)), "a denominator's sign is not shown")
        elif "operand_of" in why:
            name = why["operand_of"]
            kind, self_ = self.variables[name]["kind"], {(name,): 1}
            differences = [sub(one, self_) if kind == "min" else sub(self_, one) for one in self.of(name)]
            need(kind in ("min", "max") and is_ in differences, f"no bound of a {kind}")
        elif "guard" in why:
            self.check_guard(is_, why, scope)
        else:  # a condition around the access; cases are looked at where they stand
            need(why.keys() & {"condition", "exact"}, "a hypothesis comes from nowhere")

    def check_axis(self, is_, why):
        self_ = {(why["axis"],): 1}
        need(self.variables[why["axis"]]["kind"] == "axis", "no axis")
        for side in ("low", "high"):
            if side in why:
                need(self.ranges.setdefault((why["axis"], side), why[side]) == why[side], "an axis has two ranges")
        low = poly(why["low"]) if "low" in why else self_
        high = sub(poly(why["high"]), number(1)) if "high" in why else self_
        need(is_ == sub(high, low), "a range is not what its hypothesis says")

    def check_guard(self, is_, why, scope):
        kind, _, text = self.guards[why["guard"]].partition(" ")
        text = re.sub(r' : "(?:[^"\\]|\\.)*"$', "", text)
        if kind in ("nonneg", "zero", "nonzero"):
            e = self.formula(text)
            wanted = {"nonneg": [e], "zero": [e, sub({}, e)], "nonzero": [sub(e, number(1))]}[kind]
            if kind == "nonzero":
                need(self.goal(why["not_negative"], scope) == e, "a divisor's sign is not shown")
        elif kind == "divides":
            multiple, divisor = map(self.formula, split(text))
            difference = sub(multiple, mul(divisor, self.variable("quotient", [multiple, divisor])))
            wanted = [difference, sub({}, difference)]
        else:
            text, _, given = text.partition(" given ")
            both, _, box = text.partition(" for ")
            dims = {}
            for place, (part, axis) in enumerate(zip(split(box), why["at"], strict=True)):
                low, high = part.split(" to ")
                for side, bound in (("low", low), ("high", high)):
                    known = self.ranges.get((axis, side))
                    need(known is not None and poly(known) == self.formula(bound, dims), "a guard is used outside of its box")
                dims[f"d{place}"] = {(axis,): 1}
            conditions = [self.formula(one, dims) for one in split(given)] if given else []
            need([self.goal(one, scope) for one in why["given"]] == conditions, "a guard's conditions are not shown")
            index, extent = (self.formula(one, dims) for one in split(both))
            wanted = [index, sub(sub(extent, number(1)), index)]
        need(is_ in wanted, "a guard does not say that")

    # Proofs.

    def goal(self, proof, scope):
        """What a proof shows to be not negative."""
        need(isinstance(proof, dict), "a proof is missing")
        goal = poly(proof["goal"])
        getattr(self, "by_" + proof["rule"])(goal, proof, scope)
        return goal

    def by_lows(self, goal, proof, scope):
        lows = {}
        for name, key in proof["lows"].items():
            rest = sub(self.holds(str(key), scope), {(name,): 1})
            need(set(rest) <= {()} and rest.get((), 0) <= 0, "no lower bound of a variable")
            lows[name] = -rest.get((), 0)
        least = 0
        for monomial, coefficient in goal.items():
            need(not monomial or coefficient > 0, "a coefficient is negative")
            for name in monomial:
                coefficient *= lows[name]
            least += coefficient
        need(least >= 0, "the least value is negative")

    def by_scale(self, goal, proof, scope):
        need(isinstance(proof["by"], int) and proof["by"] >= 1, "a scale is not positive")
        rest = sub(goal, mul(number(proof["by"]), self.goal(proof["rest"], scope)))
        need(set(rest) <= {()} and rest.get((), 0) >= 0, "a scaled goal is more than its rest")

    def by_bound(self, goal, proof, scope):
        scale, hypothesis = poly(proof["scale"]), self.holds(str(proof["hypothesis"]), scope)
        need(self.goal(proof["positive"], scope) == sub(scale, number(1)), "a scale is not shown to be positive")
        factor = self.goal(proof["factor"], scope)
        rest = sub(sub(add(mul(scale, goal), scale), number(1)), mul(factor, hypothesis))
        need(self.goal(proof["rest"], scope) == rest, "a step is no identity")

    def by_cases(self, goal, proof, scope):
        cases = self.cases(proof["variable"])
        need(len(cases) == len(proof["cases"]), "a case is missing")
        for facts, one in zip(cases, proof["cases"]):
            inner = {**scope, **one["hypotheses"]}
            need(not scope.keys() & one["hypotheses"].keys(), "a case changes what is known")
            for key, added in one["hypotheses"].items():
                if added["from"] == {"case": True}:
                    need(poly(added["is"]) in facts, "a case assumes what it does not say")
                    self.checked.add((key, id(added)))
            need(self.goal(one["proof"], inner) == goal, "a case proves something else")

    def cases(self, name):
        one, self_ = self.variables[name], {(name,): 1}
        operands = self.of(name)

        def is_value(value, *conditions):
            return [*conditions, sub(self_, value), sub(value, self_)]

        if one["kind"] in ("min", "max"):
            order = sub if one["kind"] == "min" else lambda a, b: sub(b, a)
            return [is_value(mine, *(order(other, mine) for other in operands if other is not mine)) for mine in operands]
        need(one["kind"] == "where", "a variable has no cases")
        rise, (yes, no) = sub(operands[1], operands[0]), operands[2:]
        fall = sub({}, rise)
        if one["compares"] in ("==", "!="):
            yes, no = (yes, no) if one["compares"] == "==" else (no, yes)
            return [is_value(yes, rise, fall), is_value(no, sub(rise, number(1))), is_value(no, sub(fall, number(1)))]
        least = 1 if one["compares"] == "<" else 0
        return [is_value(yes, sub(rise, number(least))), is_value(no, add(fall, number(least - 1)))]


def split(text):
    """At commas outside of parentheses."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def replay(safe):
    """Raises Wrong where a proof does not hold."""
    sizes = [tuple(text.split(" = ", 1)) for text in safe["sizes"]]
    for record in safe["accesses"]:
        if record["how"] != "proved":
            need(record["how"] in ("fill", "checked while it runs"), f"{record['place']}: no proof")
            continue
        try:
            entry = Entry(record, sizes, safe["guards"])
            for axis_hypothesis in record["hypotheses"].values():
                if "axis" in axis_hypothesis["from"]:
                    entry.check_axis(poly(axis_hypothesis["is"]), axis_hypothesis["from"])
            shown = set()
            for goal in record["goals"]:
                dim = goal["dim"]
                subscript, extent = entry.formula(record["subscripts"][dim]), entry.formula(record["extents"][dim])
                need(poly(goal["subscript"]) == subscript and poly(goal["extent"]) == extent, "a goal is about something else")
                wanted = subscript if goal["side"] == "low" else sub(sub(extent, number(1)), subscript)
                need(entry.goal(goal["proof"], entry.hypotheses) == wanted, "a proof is of something else")
                shown.add((dim, goal["side"]))
            need(shown == {(dim, side) for dim in range(len(record["subscripts"])) for side in ("low", "high")},
                 "a side of a subscript has no proof")
        except (Wrong, KeyError, IndexError, TypeError, ValueError, AttributeError, SyntaxError, RecursionError) as error:
            raise Wrong(f"{record['place']}: {record['tensor']}: {error}") from error


def accesses_of(ir):
    """Of the IR's text: operations and subscripts without the names of values."""
    counts = {}
    for line in ir.splitlines():
        match = re.search(r"tgl\.(read|write|sort)\b", line)
        if match:
            counts[match[1]] = counts.get(match[1], 0) + 1
    return counts


def spoiled(safe, rng):
    """A copy with one number or word changed that a proof rests on; None where there is none."""
    safe = copy.deepcopy(safe)
    records = [one for one in safe["accesses"] if one["how"] == "proved" and one["goals"]]
    if not records:
        return None
    record = rng.choice(records)
    goal = rng.choice(record["goals"])
    how = rng.randrange(5)
    if how == 0:
        goal["subscript"] += " + 1"
    elif how == 1:
        place = rng.randrange(len(record["subscripts"]))
        record["subscripts"][place] += " + 1"
    elif how == 2:
        place = rng.randrange(len(record["extents"]))
        record["extents"][place] += " - 1"
    elif how == 3:
        proof = goal["proof"]
        while "rest" in proof and rng.randrange(3):
            proof = proof["rest"]
        proof["goal"] += " - 1"
    else:
        goal["proof"] = None
    return safe


def ask(build, file, options):
    done = subprocess.run([build / "bin/tegula", "prove", file, "--safe", "--json", *options], capture_output=True, text=True)
    if done.returncode not in (0, 5):
        raise Wrong(f"prove ends with {done.returncode}: {done.stderr.strip()[:300]}")
    return json.loads(done.stdout)["safe"]


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("build", type=pathlib.Path)
    options.add_argument("files", nargs="+", type=pathlib.Path)
    options.add_argument("--spoil", type=int, default=20, help="spoiled records for each file")
    given, more = options.parse_known_args()
    failures = proved = all_spoiled = 0
    for file in given.files:
        try:
            safe = ask(given.build, file, more)
            ir = subprocess.run([given.build / "bin/tegula", "compile", file, "--emit=tgl", *more], capture_output=True,
                                text=True, check=True).stdout
            counted = {}
            for record in safe["accesses"]:
                counted[record["op"]] = counted.get(record["op"], 0) + 1
            need(counted == accesses_of(ir), f"the record has {counted} and the IR {accesses_of(ir)}")
            here = sum(record["how"] == "open" for record in safe["accesses"])
            need(not here, f"{here} accesses have no proof that can be replayed")
            replay(safe)
            proved += sum(record["how"] == "proved" for record in safe["accesses"])
            rng = random.Random(1)
            for _ in range(given.spoil):
                bad = spoiled(safe, rng)
                if bad is None:
                    break
                all_spoiled += 1
                try:
                    replay(bad)
                except Wrong:
                    continue
                raise Wrong("a spoiled record was taken")
        except (Wrong, subprocess.CalledProcessError) as error:
            failures += 1
            print(f"FAILS {file}: {error}", flush=True)
    print(f"{proved} accesses of {len(given.files)} files proved again, {all_spoiled} spoiled records refused, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

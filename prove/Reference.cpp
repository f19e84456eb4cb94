//===- Reference.cpp - A function of PyTorch over exact numbers -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Reference.h"
#include "prove/Bounds.h"
#include "prove/EvaluateImpl.h"
#include "prove/ReferenceMaps.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::prove;

namespace {
/// What a program of the trace computes, one tensor for each instruction.
class Runner {
public:
  Runner(const json::Array &program, const Point &point, Algebra &algebra,
         const EvaluateOptions &options, std::vector<std::pair<std::string, uint8_t>> &ways)
      : program(program), point(point), algebra(algebra), options(options), ways(ways) {}

  /// False, with a message, where an instruction is not known or too long.
  bool run() {
    for (const json::Value &value : program) {
      const json::Object &instruction = *value.getAsObject();
      values.emplace_back();
      bounds.emplace_back();
      PointTensor &out = values.back();
      isFloat = instruction.getBoolean("float").value_or(false);
      fromData.push_back(instruction.getString("op") == "input" || isData(instruction));
      out.dtype = isFloat ? DType::F32 : integerType(instruction);
      for (const json::Value &dim : *instruction.getArray("shape"))
        out.shape.push_back(*dim.getAsInteger());
      steps += uint64_t(out.count());
      if (steps > 20 * options.maxSteps || !step(instruction, out))
        return false;
      for (int64_t &integer : out.integers)
        integer = wrap(integer, out.dtype);
    }
    return true;
  }

  std::vector<PointTensor> values;
  std::vector<bool> fromData; // by value
  std::string message;
  uint64_t steps = 0;

private:
  static DType integerType(const json::Object &instruction) {
    StringRef name = instruction.getString("dtype").value_or("i64");
    for (DType type : {DType::Bool, DType::U8, DType::I8, DType::I16, DType::I32})
      if (name == tegula::toString(type))
        return type;
    return DType::I64;
  }

  bool step(const json::Object &instruction, PointTensor &out) {
    StringRef op = *instruction.getString("op");
    SmallVector<const PointTensor *> in;
    if (const json::Array *array = instruction.getArray("in"))
      for (const json::Value &value : *array)
        in.push_back(&values[size_t(*value.getAsInteger())]);
    StringRef fn = instruction.getString("fn").value_or("");
    int64_t n = instruction.getInteger("n").value_or(1);
    if (op == "input")
      return input(*instruction.getString("name"), out);
    if (op == "const")
      return constant(*instruction.getArray("values"), out);
    if (op == "gather")
      return gather(instruction, in, out);
    if (op == "map")
      return map(fn, instruction, in, out);
    if (op == "reduce")
      return reduce(fn, n, instruction.getNumber("correction").value_or(0), *in[0], out);
    if (op == "bmm")
      return product(instruction, *in[0], *in[1], out);
    if (op == "scan")
      return scan(fn, n, *in[0], out);
    if (op == "sort")
      return sort(fn == "place", n, *instruction.getInteger("take"),
                  *instruction.getBoolean("descending"), *in[0], out);
    if (op == "take")
      return take(*in[0], *in[1], out);
    if (op == "put")
      return put(fn == "add", *in[0], *in[1], *in[2], out);
    message = ("the trace has an instruction '" + op + "'").str();
    return false;
  }

  bool input(StringRef name, PointTensor &out) {
    for (const PointTensor &tensor : point.inputs) {
      if (tensor.name != name)
        continue;
      out.numbers = tensor.numbers;
      out.integers = tensor.integers;
      return true;
    }
    message = ("there is no parameter '" + name + "'").str();
    return false;
  }

  Number numberOf(const json::Value &value) const {
    if (std::optional<double> number = value.getAsNumber())
      return algebra.constant(*number, std::fabs(double(float(*number)) - *number) != 0);
    StringRef text = value.getAsString().value_or("nan");
    return text == "nan" ? algebra.nan() : algebra.infinity(text.starts_with("-"));
  }

  bool constant(const json::Array &given, PointTensor &out) {
    // Most tensors have few values, and a constant's fraction is looked for.
    std::map<double, Number> known;
    bool isFinite = true;
    for (const json::Value &value : given) {
      if (!isFloat) {
        out.integers.push_back(value.getAsInteger().value_or(0));
        continue;
      }
      std::optional<double> number = value.getAsNumber();
      if (!number) {
        out.numbers.push_back(numberOf(value));
        isFinite = false;
        continue;
      }
      auto [entry, isNew] = known.try_emplace(*number);
      bounds.back() =
          out.numbers.empty() ? Bounds::of(*number) : hull(bounds.back(), Bounds::of(*number));
      if (isNew)
        entry->second = numberOf(value);
      out.numbers.push_back(entry->second);
    }
    if (!isFinite)
      bounds.back() = Bounds();
    return true;
  }

  bool gather(const json::Object &instruction, ArrayRef<const PointTensor *> in, PointTensor &out) {
    SmallVector<int64_t> starts;
    int64_t total = 0;
    for (const PointTensor *one : in) {
      starts.push_back(total);
      total += one->count();
    }
    Number fill = numberOf(*instruction.get("fill"));
    bounds.back() = boundsAt(instruction, 0);
    for (unsigned k = 1; k < in.size(); ++k)
      bounds.back() = hull(bounds.back(), boundsAt(instruction, k));
    std::optional<double> finiteFill = instruction.getNumber("fill");
    int64_t integerFill = instruction.getNumber("fill").value_or(0);
    for (const json::Value &value : *instruction.getArray("index")) {
      int64_t at = *value.getAsInteger() - 1;
      if (at < 0) {
        bounds.back() = finiteFill ? hull(bounds.back(), Bounds::of(*finiteFill)) : Bounds();
        if (isFloat)
          out.numbers.push_back(fill);
        else
          out.integers.push_back(integerFill);
        continue;
      }
      size_t k = in.size() - 1;
      while (starts[k] > at)
        --k;
      if (isFloat)
        out.numbers.push_back(in[k]->numbers[size_t(at - starts[k])]);
      else
        out.integers.push_back(in[k]->integers[size_t(at - starts[k])]);
    }
    return true;
  }

  /// Whether what an instruction takes comes from data, and not from constants alone.
  bool isData(const json::Object &instruction) const {
    const json::Array *array = instruction.getArray("in");
    return array && any_of(*array, [&](const json::Value &value) {
             return fromData[size_t(*value.getAsInteger())];
           });
  }

  bool map(StringRef fn, const json::Object &instruction, ArrayRef<const PointTensor *> in,
           PointTensor &out) {
    uint8_t *way = nullptr;
    noteBounds(fn, instruction);
    if (isCondition(fn) && isData(instruction)) {
      if (conditions == ways.size())
        ways.push_back({fn.str(), 0});
      way = &ways[conditions++].second;
      if ((fn == "maximum" || fn == "minimum") &&
          Bounds::areOrdered(boundsAt(instruction, 0), boundsAt(instruction, 1)))
        way = nullptr; // it has one way alone
    }
    for (size_t k = 0, count = size_t(out.count()); k < count; ++k) {
      SmallVector<const Number *, 3> numbers;
      SmallVector<int64_t, 3> integers;
      for (const PointTensor *one : in) {
        numbers.push_back(one->numbers.empty() ? nullptr : &one->numbers[k]);
        integers.push_back(one->integers.empty() ? 0 : one->integers[k]);
      }
      if (isFloat) {
        std::optional<Number> value = mapToNumber(fn, algebra, numbers, integers, way);
        if (!value)
          return unknown(fn);
        out.numbers.push_back(*value);
      } else {
        std::optional<int64_t> value = mapToInteger(fn, algebra, numbers, integers, way);
        if (!value)
          return unknown(fn);
        out.integers.push_back(*value);
      }
    }
    return true;
  }

  Bounds boundsAt(const json::Object &instruction, unsigned k) const {
    return bounds[size_t(*(*instruction.getArray("in"))[k].getAsInteger())];
  }

  /// What is known of a map's values, which nan aside are reals.
  void noteBounds(StringRef fn, const json::Object &instruction) {
    if (!isFloat)
      return;
    const json::Array &in = *instruction.getArray("in");
    auto at = [&](unsigned k) { return boundsAt(instruction, k); };
    Bounds &own = bounds.back();
    if (in.size() == 1)
      own = ofFunction(fn, at(0));
    else if (fn == "maximum")
      own = largerOf(at(0), at(1));
    else if (fn == "minimum")
      own = smallerOf(at(0), at(1));
    else if (fn == "add")
      own = sum(at(0), at(1));
    else if (fn == "sub")
      own = sum(at(0), negated(at(1)));
    else if (fn == "mul")
      own = in[0] == in[1] ? Bounds::notNegative() : prove::product(at(0), at(1));
    else if (fn == "div")
      own = quotient(at(0), at(1));
    else if (fn == "where")
      own = hull(at(1), at(2));
  }

  bool unknown(StringRef fn) {
    message = ("the reference's '" + fn + "' has no exact meaning here").str();
    return false;
  }

  bool reduce(StringRef fn, int64_t n, double correction, const PointTensor &in, PointTensor &out) {
    steps += uint64_t(in.count());
    std::optional<tgl::ReduceKind> kind = StringSwitch<std::optional<tgl::ReduceKind>>(fn)
                                              .Case("sum", tgl::ReduceKind::Sum)
                                              .Case("prod", tgl::ReduceKind::Prod)
                                              .Case("max", tgl::ReduceKind::Max)
                                              .Case("min", tgl::ReduceKind::Min)
                                              .Case("var", tgl::ReduceKind::Var)
                                              .Case("argmax", tgl::ReduceKind::ArgMax)
                                              .Case("argmin", tgl::ReduceKind::ArgMin)
                                              .Default(std::nullopt);
    if (!kind || (correction != 0 && correction != 1))
      return unknown(fn);
    for (int64_t row = 0, rows = out.count(); row < rows; ++row) {
      if (in.numbers.empty() && in.integers.empty() && n)
        return unknown(fn);
      if (isFloat) {
        out.numbers.push_back(reduceNumbers(algebra, *kind,
                                            ArrayRef(in.numbers).slice(size_t(row * n), size_t(n)),
                                            correction == 1));
        continue;
      }
      out.integers.push_back(
          in.numbers.empty()
              ? reduceIntegers(*kind, ArrayRef(in.integers).slice(size_t(row * n), size_t(n)))
              : winner(*kind, ArrayRef(in.numbers).slice(size_t(row * n), size_t(n))));
    }
    return true;
  }

  int64_t winner(tgl::ReduceKind kind, ArrayRef<Number> row) {
    size_t best = 0;
    Comparison wanted = kind == tgl::ReduceKind::ArgMax ? Comparison::Greater : Comparison::Less;
    for (size_t k = 1; k < row.size(); ++k)
      if (algebra.compare(row[k], row[best]) == wanted)
        best = k;
    return int64_t(best);
  }

  static int64_t reduceIntegers(tgl::ReduceKind kind, ArrayRef<int64_t> row) {
    switch (kind) {
    case tgl::ReduceKind::Sum: {
      uint64_t sum = 0;
      for (int64_t value : row)
        sum += uint64_t(value);
      return int64_t(sum);
    }
    case tgl::ReduceKind::Prod: {
      uint64_t product = 1;
      for (int64_t value : row)
        product *= uint64_t(value);
      return int64_t(product);
    }
    case tgl::ReduceKind::Max:
      return row.empty() ? 0 : *std::max_element(row.begin(), row.end());
    case tgl::ReduceKind::Min:
      return row.empty() ? 1 : *std::min_element(row.begin(), row.end());
    case tgl::ReduceKind::ArgMax:
      return std::max_element(row.begin(), row.end()) - row.begin();
    default:
      return std::min_element(row.begin(), row.end()) - row.begin();
    }
  }

  bool product(const json::Object &instruction, const PointTensor &a, const PointTensor &b,
               PointTensor &out) {
    auto size = [&](StringRef name) { return size_t(*instruction.getInteger(name)); };
    size_t batch = size("b"), m = size("m"), depth = size("k"), n = size("n");
    steps += batch * m * depth * n;
    if (steps > 20 * options.maxSteps)
      return false;
    std::vector<Number> terms(depth);
    for (size_t g = 0; g < batch; ++g)
      for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < n; ++j) {
          for (size_t k = 0; k < depth; ++k)
            terms[k] =
                algebra.mul(a.numbers[(g * m + i) * depth + k], b.numbers[(g * depth + k) * n + j]);
          out.numbers.push_back(
              reduceNumbers(algebra, tgl::ReduceKind::Sum, terms, /*isUnbiased=*/false));
        }
    return true;
  }

  bool scan(StringRef fn, int64_t n, const PointTensor &in, PointTensor &out) {
    for (size_t k = 0, count = size_t(out.count()); k < count; ++k) {
      bool isFirst = k % size_t(n) == 0;
      if (isFloat) {
        const Number &next = in.numbers[k];
        out.numbers.push_back(
            isFirst        ? next
            : fn == "sum"  ? algebra.add(out.numbers.back(), next)
            : fn == "prod" ? algebra.mul(out.numbers.back(), next)
                           : extreme(algebra, out.numbers.back(), next, /*isMax=*/fn == "max"));
        continue;
      }
      int64_t next = in.integers[k], before = isFirst ? next : out.integers.back();
      out.integers.push_back(isFirst        ? next
                             : fn == "sum"  ? before + next
                             : fn == "prod" ? before * next
                             : fn == "max"  ? std::max(before, next)
                                            : std::min(before, next));
    }
    return true;
  }

  bool sort(bool wantsPlaces, int64_t n, int64_t kept, bool isDescending, const PointTensor &in,
            PointTensor &out) {
    for (int64_t row = 0; n && row < in.count() / n; ++row) {
      auto start = size_t(row * n);
      std::vector<size_t> order =
          in.numbers.empty()
              ? sortedPlaces(ArrayRef(in.integers).slice(start, size_t(n)), isDescending)
              : sortedPlaces(algebra, ArrayRef(in.numbers).slice(start, size_t(n)), isDescending);
      for (int64_t k = 0; k < kept; ++k) {
        if (wantsPlaces)
          out.integers.push_back(int64_t(order[size_t(k)]));
        else if (isFloat)
          out.numbers.push_back(in.numbers[start + order[size_t(k)]]);
        else
          out.integers.push_back(in.integers[start + order[size_t(k)]]);
      }
    }
    return true;
  }

  bool take(const PointTensor &source, const PointTensor &places, PointTensor &out) {
    for (int64_t at : places.integers) {
      if (at < 0 || at >= source.count()) {
        isOutside = true;
        message = "the reference reads outside a tensor";
        return false;
      }
      if (isFloat)
        out.numbers.push_back(source.numbers[size_t(at)]);
      else
        out.integers.push_back(source.integers[size_t(at)]);
    }
    return true;
  }

  bool put(bool adds, const PointTensor &before, const PointTensor &places,
           const PointTensor &given, PointTensor &out) {
    out.numbers = before.numbers;
    out.integers = before.integers;
    for (auto [k, at] : enumerate(places.integers)) {
      if (at < 0 || at >= before.count()) {
        isOutside = true;
        message = "the reference writes outside a tensor";
        return false;
      }
      auto to = size_t(at);
      if (isFloat)
        out.numbers[to] = adds ? algebra.add(out.numbers[to], given.numbers[k]) : given.numbers[k];
      else
        out.integers[to] = given.integers[k] + (adds ? out.integers[to] : 0);
    }
    return true;
  }

  const json::Array &program;
  const Point &point;
  Algebra &algebra;
  const EvaluateOptions &options;
  std::vector<std::pair<std::string, uint8_t>> &ways;
  size_t conditions = 0;
  bool isFloat = false;
  std::vector<Bounds> bounds; // by value

public:
  bool isOutside = false;
};
} // namespace

void ReferenceSubject::settle(Coverage::Kind kind) {
  if (kind == Coverage::Kind::Finite)
    for (auto [k, condition] : enumerate(ways)) {
      if (k == sureWays.size())
        sureWays.push_back({condition.first, 0});
      sureWays[k].second |= condition.second & (Coverage::WasTrue | Coverage::WasFalse);
    }
  else if (kind == Coverage::Kind::Infinite)
    for (auto [k, condition] : enumerate(ways))
      if (k < sureWays.size())
        sureWays[k].second |= condition.second / Coverage::AlwaysFalse;
  ways.clear();
}

std::vector<std::string> ReferenceSubject::oneSided() const {
  std::vector<std::string> texts;
  for (const auto &[fn, way] : sureWays)
    if (way == Coverage::WasTrue || way == Coverage::WasFalse) // 0: none was met
      texts.push_back("the reference's '" + fn +
                      (way == Coverage::WasTrue ? "' was never false" : "' was never true"));
  return texts;
}

const json::Object *ReferenceSubject::programFor(const Point &point, Evaluation &result) {
  result.problem = Evaluation::Unknown;
  json::Array arguments;
  for (const PointTensor &tensor : point.inputs) {
    json::Array shape;
    for (int64_t dim : tensor.shape)
      shape.push_back(dim);
    arguments.push_back(json::Object{
        {"name", tensor.name}, {"shape", std::move(shape)}, {"dtype", toString(tensor.dtype)}});
  }
  size_t next = 0;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    if (isa<tgl::TglTensorType>(kernel.getArgumentTypes()[i]))
      continue;
    const PointScalar &scalar = point.scalars[next++];
    json::Object one{{"name", kernel.getArgName(i)}};
    if (auto *integer = std::get_if<int64_t>(&scalar))
      one["value"] = *integer;
    else
      one["value"] = double(std::get<Number>(scalar).real);
    arguments.push_back(std::move(one));
  }
  for (const auto &[name, value] : constants)
    arguments.push_back(json::Object{{"name", name}, {"value", value}});
  json::Value question = json::Object{{"path", path},
                                      {"kernel", tgl::KernelOp(kernel).getSymName()},
                                      {"seed", 0},
                                      {"arguments", std::move(arguments)}};
  std::string key;
  raw_string_ostream(key) << question;
  auto found = programs.find(key);
  if (found == programs.end()) {
    Expected<json::Value> answer = process.ask(question);
    if (!answer) {
      result.message = toString(answer.takeError());
      return nullptr;
    }
    found = programs.emplace(std::move(key), std::move(*answer)).first;
  }
  const json::Object *object = found->second.getAsObject();
  if (object && object->getArray("program")) {
    result.problem = Evaluation::None;
    return object;
  }
  std::optional<StringRef> refused = object ? object->getString("refused") : std::nullopt;
  if (refused)
    result.problem = Evaluation::Refused;
  result.message = refused  ? refused->str()
                   : object ? object->getString("error").value_or("no answer").str()
                            : "no answer";
  return nullptr;
}

Evaluation ReferenceSubject::run(const Point &point, Algebra &algebra,
                                 const EvaluateOptions &options) {
  Evaluation result;
  const json::Object *answer = programFor(point, result);
  if (!answer)
    return result;
  Runner runner(*answer->getArray("program"), point, algebra, options, ways);
  runner.values.reserve(answer->getArray("program")->size());
  if (!runner.run()) {
    result.message = runner.message;
    result.problem = runner.isOutside         ? Evaluation::BadSubscript
                     : result.message.empty() ? Evaluation::Limit
                                              : Evaluation::Unknown;
    return result;
  }
  result.steps = runner.steps;
  for (const json::Value &place : *answer->getArray("outputs")) {
    result.outputs.push_back(runner.values[size_t(*place.getAsInteger())]);
    result.outputs.back().name = "output " + std::to_string(result.outputs.size() - 1);
  }
  return result;
}

//===- Reference.cpp - A function of PyTorch over exact numbers -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/Reference.h"
#include "prove/EvaluateImpl.h"
#include "prove/ProductSum.h"
#include "prove/ReferenceMaps.h"

using namespace llvm;
using namespace tegula;
using namespace tegula::prove;

namespace {
/// What a program of the trace computes, one tensor for each instruction.
class Runner {
public:
  Runner(const ReferenceProgram &program, const Point &point, Algebra &algebra,
         const EvaluateOptions &options, std::vector<std::pair<std::string, uint8_t>> &ways)
      : program(program), point(point), algebra(algebra), options(options), ways(ways) {
    values.reserve(program.instructions.size());
    given.resize(program.instructions.size());
    views.resize(program.instructions.size());
    endings.resize(program.instructions.size());
    for (auto [value, user] : enumerate(program.lastUses))
      if (user < endings.size())
        endings[user].push_back(unsigned(value));
  }

  /// False, with a message, where an instruction is not known or too long.
  bool run() {
    for (const auto &[place, instruction] : enumerate(program.instructions)) {
      values.emplace_back();
      isDecided = program.isDecided[place];
      PointTensor &out = values.back();
      isFloat = instruction.isFloat;
      fromData.push_back(instruction.op == "input" || isData(instruction));
      out.dtype = instruction.dtype;
      out.shape = instruction.shape;
      steps += uint64_t(out.count());
      if (steps > 20 * options.maxSteps || !step(instruction, out))
        return false;
      for (int64_t &integer : out.integers)
        integer = wrap(integer, out.dtype);
      for (unsigned value : endings[place]) {
        values[value] = PointTensor();
        views[value] = {};
      }
    }
    return true;
  }

  const PointTensor &valueOf(unsigned value) const {
    return given[value] ? *given[value] : values[value];
  }

  std::vector<bool> fromData; // by value
  std::string message;
  uint64_t steps = 0;

private:
  bool step(const Instruction &instruction, PointTensor &out) {
    StringRef op = instruction.op, fn = instruction.fn;
    SmallVector<const PointTensor *> in;
    for (unsigned value : instruction.in)
      in.push_back(&valueOf(value));
    int64_t n = instruction.n;
    if (op == "input")
      return input(instruction.name, out);
    if (op == "const")
      return constant(instruction, out);
    if (op == "gather")
      return gather(instruction, in, out);
    if (op == "map")
      return map(fn, instruction, in, out);
    if (op == "reduce")
      return reduce(fn, n, instruction.correction, *in[0], out);
    if (op == "bmm")
      return product(instruction, elementsOf(instruction.in[0]), elementsOf(instruction.in[1]),
                     out);
    if (op == "scan")
      return scan(fn, n, *in[0], out);
    if (op == "sort")
      return sort(fn == "place", n, instruction.take, instruction.isDescending, *in[0], out);
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
      if (isFloat)
        given[values.size() - 1] = &tensor;
      else
        out.integers = tensor.integers;
      return true;
    }
    message = ("there is no parameter '" + name + "'").str();
    return false;
  }

  /// Of f64 where f32 does not hold it.
  Number numberOf(double value) const {
    return algebra.constant(value, std::fabs(double(float(value)) - value) != 0);
  }

  bool constant(const Instruction &given, PointTensor &out) {
    auto count = size_t(out.count());
    if (!isFloat) {
      out.integers = given.integers;
      if (given.integers.size() == 1)
        out.integers.assign(count, given.integers[0]);
      return true;
    }
    if (given.values.size() == 1) {
      out.numbers.assign(count, numberOf(given.values[0]));
      return true;
    }
    out.numbers.reserve(count);
    for (double value : given.values)
      out.numbers.push_back(numberOf(value));
    return true;
  }

  bool gather(const Instruction &instruction, ArrayRef<const PointTensor *> in, PointTensor &out) {
    SmallVector<int64_t> starts;
    int64_t total = 0;
    for (const PointTensor *one : in) {
      starts.push_back(total);
      total += one->count();
    }
    ArrayRef<int32_t> places = *instruction.places;
    auto fillOut = [&](auto &list, auto member, const auto &fill, auto element) {
      list.reserve(places.size());
      for (int32_t place : places) {
        int64_t at = place - 1;
        if (at < 0) {
          list.push_back(element(fill));
          continue;
        }
        size_t k = in.size() - 1;
        while (starts[k] > at)
          --k;
        list.push_back(element((in[k]->*member)[size_t(at - starts[k])]));
      }
    };
    auto itself = [](const auto &element) { return element; };
    if (isFloat && program.isView[values.size() - 1]) {
      fills.push_back(numberOf(instruction.fill));
      fillOut(views[values.size() - 1], &PointTensor::numbers, fills.back(),
              [](const Number &element) { return &element; });
    } else if (isFloat) {
      fillOut(out.numbers, &PointTensor::numbers, numberOf(instruction.fill), itself);
    } else {
      fillOut(out.integers, &PointTensor::integers,
              std::isfinite(instruction.fill) ? int64_t(instruction.fill) : 0, itself);
    }
    return true;
  }

  /// A tensor's numbers, or those that a view names.
  struct Elements {
    const Number *numbers;
    const Number *const *view;
    const Number &operator[](size_t at) const { return view ? *view[at] : numbers[at]; }
  };
  Elements elementsOf(unsigned value) const {
    return {valueOf(value).numbers.data(), program.isView[value] ? views[value].data() : nullptr};
  }

  /// Whether what an instruction takes comes from data, and not from constants alone.
  bool isData(const Instruction &instruction) const {
    return any_of(instruction.in, [&](unsigned value) { return fromData[value]; });
  }

  bool map(StringRef fn, const Instruction &instruction, ArrayRef<const PointTensor *> in,
           PointTensor &out) {
    uint8_t *way = nullptr;
    if (isCondition(fn) && isData(instruction)) {
      if (conditions == ways.size())
        ways.push_back({fn.str(), 0});
      way = &ways[conditions++].second;
      if (isDecided)
        way = nullptr; // it has one way alone
    }
    auto count = size_t(out.count());
    if (isFloat)
      out.numbers.reserve(count);
    else
      out.integers.reserve(count);
    if (isFloat && !isCondition(fn) && mapPlainly(fn, in, count, out))
      return true;
    for (size_t k = 0; k < count; ++k) {
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

  /// False where the function is none of numbers alone.
  bool mapPlainly(StringRef fn, ArrayRef<const PointTensor *> in, size_t count, PointTensor &out) {
    if (any_of(in, [&](const PointTensor *one) { return one->numbers.size() != count; }))
      return false;
    UnaryMap unary = in.size() == 1 ? unaryMap(fn) : nullptr;
    BinaryMap binary = in.size() == 2 ? binaryMap(fn) : nullptr;
    for (size_t k = 0; k < count && unary; ++k)
      out.numbers.push_back(unary(algebra, in[0]->numbers[k]));
    for (size_t k = 0; k < count && binary; ++k)
      out.numbers.push_back(binary(algebra, in[0]->numbers[k], in[1]->numbers[k]));
    return unary || binary;
  }

  bool unknown(StringRef fn) {
    message = ("the reference's '" + fn + "' has no exact meaning here").str();
    return false;
  }

  bool reduce(StringRef fn, int64_t n, int64_t correction, const PointTensor &in,
              PointTensor &out) {
    steps += uint64_t(in.count());
    std::optional<tgl::ReduceKind> kind = StringSwitch<std::optional<tgl::ReduceKind>>(fn)
                                              .Case("sum", tgl::ReduceKind::Sum)
                                              .Case("prod", tgl::ReduceKind::Prod)
                                              .Case("max", tgl::ReduceKind::Max)
                                              .Case("min", tgl::ReduceKind::Min)
                                              .Case("var", tgl::ReduceKind::Var)
                                              .Case("logsumexp", tgl::ReduceKind::LogSumExp)
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

  bool product(const Instruction &instruction, Elements a, Elements b, PointTensor &out) {
    size_t batch = instruction.batch, m = instruction.m, depth = instruction.k;
    auto n = size_t(instruction.n);
    steps += batch * m * depth * n / ProductSum::productsOfStep;
    if (steps > 20 * options.maxSteps)
      return false;
    std::vector<Number> terms(depth);
    for (size_t g = 0; g < batch; ++g)
      for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < n; ++j) {
          ProductSum sum(algebra);
          for (size_t k = 0; k < depth; ++k)
            sum.add(a[(g * m + i) * depth + k], b[(g * depth + k) * n + j]);
          if (std::optional<Number> total = sum.total()) {
            out.numbers.push_back(*total);
            continue;
          }
          for (size_t k = 0; k < depth; ++k)
            terms[k] = algebra.mul(a[(g * m + i) * depth + k], b[(g * depth + k) * n + j]);
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

  const ReferenceProgram &program;
  std::vector<PointTensor> values;
  std::vector<const PointTensor *> given;         // by value: an input's tensor
  std::vector<std::vector<const Number *>> views; // by value: elements of a view
  std::deque<Number> fills;                       // that views name
  std::vector<std::vector<unsigned>> endings;     // by instruction: values that end with it
  const Point &point;
  Algebra &algebra;
  const EvaluateOptions &options;
  std::vector<std::pair<std::string, uint8_t>> &ways;
  size_t conditions = 0;
  bool isFloat = false, isDecided = false; // of the instruction at hand

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

const ReferenceProgram *ReferenceSubject::programFor(const Point &point,
                                                     const EvaluateOptions &options,
                                                     Evaluation &result) {
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
                                      {"most", int64_t(20 * options.maxSteps)},
                                      {"arguments", std::move(arguments)}};
  std::string key;
  raw_string_ostream(key) << question;
  Traced &found = programs[key];
  if (!found.isAsked) {
    found.isAsked = true;
    Expected<json::Value> answer = process.ask(question);
    if (answer)
      found.read(*answer);
    else
      found.message = toString(answer.takeError());
    if (found.program)
      longest = std::max(longest, found.program->instructions.size());
  }
  result.problem = found.problem;
  result.message = found.message;
  return found.program.get();
}

void ReferenceSubject::Traced::read(const json::Value &answer) {
  const json::Object *object = answer.getAsObject();
  message = "no answer";
  if (!object)
    return;
  if (std::optional<StringRef> refused = object->getString("refused")) {
    problem = Evaluation::Refused;
    message = refused->str();
  } else if (object->getBoolean("large")) {
    problem = Evaluation::Limit;
    message = "the reference has too many elements at these sizes";
  } else if (std::optional<StringRef> error = object->getString("error")) {
    message = error->str();
  } else if ((program = ReferenceProgram::read(*object, message))) {
    problem = Evaluation::None;
  }
}

Evaluation ReferenceSubject::outline(const Point &point, Algebra & /*algebra*/,
                                     EvaluateOptions options) {
  Evaluation result;
  programFor(point, options, result);
  return result;
}

Evaluation ReferenceSubject::run(const Point &point, Algebra &algebra,
                                 const EvaluateOptions &options) {
  Evaluation result;
  const ReferenceProgram *program = programFor(point, options, result);
  if (!program)
    return result;
  Runner runner(*program, point, algebra, options, ways);
  if (!runner.run()) {
    result.message = runner.message;
    result.problem = runner.isOutside         ? Evaluation::BadSubscript
                     : result.message.empty() ? Evaluation::Limit
                                              : Evaluation::Unknown;
    return result;
  }
  result.steps = runner.steps;
  for (unsigned place : program->outputs) {
    result.outputs.push_back(runner.valueOf(place));
    result.outputs.back().name = "output " + std::to_string(result.outputs.size() - 1);
  }
  return result;
}

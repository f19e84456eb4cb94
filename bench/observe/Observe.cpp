//===- Observe.cpp - What print and assert of a program saw ---------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/observe/Observe.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <charconv>
#include <cmath>
#include <set>

using namespace llvm;

namespace tegula::bench {

char FailedAssertion::ID;

using checked::Observation;

namespace {
/// When a point was reached. Points of a parallel block or an equation count in the order of their
/// elements.
struct Moment {
  std::vector<int64_t> path;
  int64_t element;
  auto operator<=>(const Moment &) const = default;
};

/// One statement after a run: its tensors, and how far its axes go.
class Seen {
public:
  static Expected<Seen> read(Launch &launch, const SizeValues &sizes,
                             const KernelObservation &observation);

  const KernelObservation &observation() const { return *of; }
  /// The first `most` points at which it happened.
  std::set<Moment> first(unsigned most) const;
  int64_t count() const { return happenings; }
  /// `t=0, i=3`, of the axes that have names.
  std::string where(int64_t element) const;
  /// `h[i] = 0.5, "after", m = 3`.
  std::string values(int64_t element) const;

private:
  std::vector<int64_t> indices(int64_t element) const;
  Moment momentOf(int64_t element) const;

  const KernelObservation *of = nullptr;
  std::vector<int64_t> lows, extents;
  std::vector<Tensor> tensors; // `happened`, then those of the values that have one
  std::vector<std::optional<unsigned>> valueTensors;
  int64_t happenings = 0;
};
} // namespace

Expected<Seen> Seen::read(Launch &launch, const SizeValues &sizes,
                          const KernelObservation &observation) {
  Seen result;
  result.of = &observation;
  std::vector<unsigned> arguments{observation.happened};
  for (std::optional<unsigned> argument : observation.values) {
    result.valueTensors.push_back(argument ? std::optional(arguments.size()) : std::nullopt);
    if (argument)
      arguments.push_back(*argument);
  }
  Expected<std::vector<Tensor>> tensors = launch.read(arguments);
  if (!tensors)
    return tensors.takeError();
  result.tensors = std::move(*tensors);
  auto valueOf = [&](const IndexVar &var) -> std::optional<int64_t> {
    for (auto [spec, value] : zip(launch.kernel().checks->sizes(), sizes))
      if (var.isSymbol() && spec.name == var.name())
        return value;
    return std::nullopt;
  };
  for (const Observation::Axis &axis : observation.statement.axes)
    result.lows.push_back(axis.lo.evaluate(valueOf).value_or(0));
  result.extents = result.tensors.front().shape().vec();
  for (int64_t i = 0, n = result.tensors.front().elements(); i < n; ++i)
    result.happenings += result.tensors.front().integer(i) != 0;
  return result;
}

std::vector<int64_t> Seen::indices(int64_t element) const {
  std::vector<int64_t> result(extents.size());
  for (size_t axis = extents.size(); axis--;) {
    result[axis] = lows[axis] + element % extents[axis];
    element /= extents[axis];
  }
  return result;
}

Moment Seen::momentOf(int64_t element) const {
  std::vector<int64_t> at = indices(element), path;
  for (const Observation::Step &step : of->statement.path) {
    path.push_back(step.position);
    if (step.axis)
      path.push_back(step.reverse ? -at[*step.axis] : at[*step.axis]);
  }
  return {std::move(path), element};
}

std::set<Moment> Seen::first(unsigned most) const {
  std::set<Moment> result;
  for (int64_t i = 0, n = tensors.front().elements(); i < n && most; ++i) {
    if (!tensors.front().integer(i))
      continue;
    result.insert(momentOf(i));
    if (result.size() > most)
      result.erase(std::prev(result.end()));
  }
  return result;
}

std::string Seen::where(int64_t element) const {
  std::string result;
  for (auto [axis, index] : zip(of->statement.axes, indices(element)))
    if (!axis.name.empty())
      result += (result.empty() ? "" : ", ") + axis.name + "=" + std::to_string(index);
  return result;
}

/// The shortest digits that give the value back.
template <typename T> static std::string shortest(T value) {
  if (std::isnan(value))
    return "nan"; // whatever its sign
  char buffer[64];
  auto [end, error] = std::to_chars(std::begin(buffer), std::end(buffer), value);
  return std::string(buffer, end);
}

static std::string elementText(const Tensor &tensor, int64_t element) {
  switch (tensor.dtype()) {
  case DType::F64:
    return shortest(tensor.real(element));
  case DType::F32:
    return shortest(static_cast<float>(tensor.real(element)));
  case DType::Bool:
    return tensor.integer(element) ? "true" : "false";
  case DType::U64:
    return std::to_string(static_cast<uint64_t>(tensor.integer(element)));
  default:
    return std::to_string(tensor.integer(element));
  }
}

std::string Seen::values(int64_t element) const {
  std::string whole; // `[1, 2]` of a tensor that is printed whole
  for (auto [axis, index] : zip(of->statement.axes, indices(element)))
    if (axis.name.empty())
      whole += (whole.empty() ? "[" : ", ") + std::to_string(index);
  whole += whole.empty() ? "" : "]";
  std::string result;
  for (auto [value, tensor] : zip(of->statement.values, valueTensors)) {
    result += result.empty() ? "" : ", ";
    result +=
        tensor ? value.text + whole + " = " + elementText(tensors[*tensor], element) : value.text;
  }
  return result;
}

static Error failure(const Seen &seen, int64_t element) {
  const KernelObservation &of = seen.observation();
  bool isWatch = of.statement.kind == Observation::Watch;
  std::string values = seen.values(element), where = seen.where(element);
  std::string what = !isWatch                  ? "assertion fails"
                     : values.ends_with("nan") ? "the first NaN"
                                               : "the first value that is not finite";
  std::string text = of.place + ": " + what + (where.empty() ? "" : " at " + where);
  if (!of.statement.message.empty())
    text += ": " + of.statement.message;
  text += "\n  " + of.text;
  if (!values.empty())
    text += "\n  " + values;
  if (seen.count() > 1)
    text += "\n  and at " + std::to_string(seen.count() - 1) + " other point" +
            (seen.count() > 2 ? "s" : "");
  return make_error<FailedAssertion>(std::move(text));
}

Error tellObservations(Launch &launch, const SizeValues &sizes, unsigned points, raw_ostream &os) {
  std::vector<Seen> all;
  for (const KernelObservation &observation : launch.kernel().observations) {
    Expected<Seen> seen = Seen::read(launch, sizes, observation);
    if (!seen)
      return seen.takeError();
    all.push_back(std::move(*seen));
  }
  std::set<std::pair<Moment, size_t>> lines; // and whose they are
  std::optional<std::pair<Moment, size_t>> failed;
  for (auto [number, seen] : enumerate(all)) {
    if (seen.observation().statement.kind == Observation::Print)
      for (const Moment &moment : seen.first(points))
        lines.insert({moment, number});
    else
      for (const Moment &moment : seen.first(1))
        if (!failed || moment < failed->first)
          failed = {moment, number};
  }
  for (const auto &[moment, number] : lines) {
    const Seen &seen = all[number];
    std::string where = seen.where(moment.element);
    os << seen.observation().place << ": " << where << (where.empty() ? "" : ": ")
       << seen.values(moment.element) << '\n';
  }
  for (const Seen &seen : all)
    if (seen.observation().statement.kind == Observation::Print && seen.count() > points)
      os << seen.observation().place << ": ... and " << seen.count() - points << " more points\n";
  os.flush();
  return failed ? failure(all[failed->second], failed->first.element) : Error::success();
}

} // namespace tegula::bench

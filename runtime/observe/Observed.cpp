//===- Observed.cpp - What print and assert of a program saw -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/observe/Observed.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include <charconv>
#include <cmath>

using namespace llvm;
using namespace tegula;

using checked::Observation;

Expected<Seen> Seen::read(const CompiledKernel &kernel, ArrayRef<int64_t> sizes,
                          const KernelObservation &observation, Reader reader) {
  Seen result;
  result.of = &observation;
  auto take = [&](unsigned argument) -> Error {
    Expected<std::vector<char>> bytes = reader(argument);
    if (!bytes)
      return bytes.takeError();
    result.tensors.push_back({kernel.arguments[argument].dtype, std::move(*bytes)});
    return Error::success();
  };
  if (Error error = take(observation.happened))
    return std::move(error);
  for (const KernelObservation::Value &value : observation.values) {
    auto &[number, isRead] = result.valueTensors.emplace_back();
    for (auto [argument, tensor] : {std::pair(value.argument, &number), {value.isRead, &isRead}}) {
      if (!argument)
        continue;
      *tensor = result.tensors.size();
      if (Error error = take(*argument))
        return std::move(error);
    }
  }
  auto valueOf = [&](const IndexVar &var) -> std::optional<int64_t> {
    for (auto [spec, value] : zip(kernel.checks->sizes(), sizes))
      if (var.isSymbol() && spec.name == var.name())
        return value;
    return std::nullopt;
  };
  for (const Observation::Axis &axis : observation.statement.axes)
    result.lows.push_back(axis.lo.evaluate(valueOf).value_or(0));
  Expected<SmallVector<int64_t>> shape = shapeOf(kernel, observation.happened, sizes);
  if (!shape)
    return shape.takeError();
  result.extents.assign(shape->begin(), shape->end());
  result.elements = 1;
  for (int64_t extent : result.extents)
    result.elements *= extent;
  for (int64_t i = 0; i < result.elements; ++i)
    result.happenings += result.happenedAt(i);
  return result;
}

bool Seen::isTrueAt(const Data &tensor, int64_t element) {
  return loadInteger(tensor.dtype, tensor.bytes.data(), element) != 0;
}

bool Seen::happenedAt(int64_t element) const { return isTrueAt(tensors.front(), element); }

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

std::set<Moment> Seen::first(size_t most) const {
  std::set<Moment> result;
  for (int64_t i = 0; i < elements && most; ++i) {
    if (!happenedAt(i))
      continue;
    result.insert(momentOf(i));
    if (result.size() > most)
      result.erase(std::prev(result.end()));
  }
  return result;
}

std::vector<Moment> Seen::all() const {
  std::vector<Moment> result;
  result.reserve(happenings);
  for (int64_t i = 0; i < elements; ++i)
    if (happenedAt(i))
      result.push_back(momentOf(i));
  llvm::sort(result);
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

static std::string elementText(DType dtype, const void *data, int64_t element) {
  switch (dtype) {
  case DType::F64:
    return shortest(loadFloat(dtype, data, element));
  case DType::F32:
    return shortest(static_cast<float>(loadFloat(dtype, data, element)));
  case DType::Bool:
    return loadInteger(dtype, data, element) ? "true" : "false";
  case DType::U64:
    return std::to_string(static_cast<uint64_t>(loadInteger(dtype, data, element)));
  default:
    return std::to_string(loadInteger(dtype, data, element));
  }
}

std::vector<Seen::Value> Seen::valueList(int64_t element) const {
  std::string whole; // `[1, 2]` of a tensor that is printed whole
  for (auto [axis, index] : zip(of->statement.axes, indices(element)))
    if (axis.name.empty())
      whole += (whole.empty() ? "[" : ", ") + std::to_string(index);
  whole += whole.empty() ? "" : "]";
  std::vector<Value> result;
  for (auto [value, numbers] : zip(of->statement.values, valueTensors)) {
    auto [number, isRead] = numbers;
    if (!number) {
      result.push_back({value.text, std::nullopt});
      continue;
    }
    if (isRead && !isTrueAt(tensors[*isRead], element))
      continue;
    // An assertion has a value for each condition behind which it is read, and shows it once.
    bool isShown = kind() == Observation::Assert &&
                   any_of(result, [&](const Value &one) { return one.text == value.text; });
    if (isShown)
      continue;
    const Data &tensor = tensors[*number];
    result.push_back({value.text + whole, elementText(tensor.dtype, tensor.bytes.data(), element)});
  }
  return result;
}

std::string Seen::values(int64_t element) const {
  std::string result;
  for (const Value &one : valueList(element)) {
    result += result.empty() ? "" : ", ";
    result += one.text + (one.value ? " = " + *one.value : "");
  }
  return result;
}

std::string Seen::verdict(int64_t element) const {
  bool isWatch = kind() == Observation::Watch;
  std::string values = this->values(element), at = where(element);
  std::string what = !isWatch                  ? "assertion fails"
                     : values.ends_with("nan") ? "the first NaN"
                                               : "the first value that is not finite";
  what += at.empty() ? "" : " at " + at;
  if (!of->statement.message.empty())
    what += ": " + of->statement.message;
  return what;
}

//===----------------------------------------------------------------------===//
// All statements
//===----------------------------------------------------------------------===//

Expected<Observed> Observed::read(const CompiledKernel &kernel, ArrayRef<int64_t> sizes,
                                  Seen::Reader reader) {
  Observed result;
  for (const KernelObservation &observation : kernel.observations) {
    Expected<Seen> seen = Seen::read(kernel, sizes, observation, reader);
    if (!seen)
      return seen.takeError();
    result.all.push_back(std::move(*seen));
  }
  return result;
}

std::vector<Observed::Point> Observed::printed(unsigned points) const {
  std::vector<Point> result;
  for (auto [number, seen] : enumerate(all))
    if (seen.kind() == Observation::Print)
      for (const Moment &moment : seen.first(points))
        result.push_back({moment, number});
  llvm::sort(result);
  return result;
}

std::optional<Observed::Point> Observed::firstFailure() const {
  std::optional<Point> result;
  for (auto [number, seen] : enumerate(all))
    if (seen.kind() == Observation::Assert || seen.kind() == Observation::Watch)
      for (const Moment &moment : seen.first(1))
        if (!result || moment < result->moment)
          result = {moment, number};
  return result;
}

std::string Observed::lines(unsigned points) const {
  std::string result;
  for (const Point &point : printed(points)) {
    const Seen &seen = all[point.statement];
    std::string where = seen.where(point.moment.element);
    result += seen.observation().place + ": " + where + (where.empty() ? "" : ": ") +
              seen.values(point.moment.element) + '\n';
  }
  for (const Seen &seen : all)
    if (seen.kind() == Observation::Print && seen.count() > points)
      result += seen.observation().place + ": ... and " + std::to_string(seen.count() - points) +
                " more points\n";
  return result;
}

std::optional<std::string> Observed::failure() const {
  std::optional<Point> point = firstFailure();
  if (!point)
    return std::nullopt;
  const Seen &seen = all[point->statement];
  std::string text = seen.observation().place + ": " + seen.verdict(point->moment.element) +
                     "\n  " + seen.observation().text;
  std::string values = seen.values(point->moment.element);
  if (!values.empty())
    text += "\n  " + values;
  if (seen.count() > 1)
    text += "\n  and at " + std::to_string(seen.count() - 1) + " other point" +
            (seen.count() > 2 ? "s" : "");
  return text;
}

/// One point: indices and values in order. Values that JSON has no number for are strings.
static json::Object pointJson(const Seen &seen, int64_t element) {
  json::Array indices;
  for (auto [axis, index] : zip(seen.observation().statement.axes, seen.indices(element)))
    if (!axis.name.empty())
      indices.push_back(json::Object{{"name", axis.name}, {"index", index}});
  json::Array values;
  for (const Seen::Value &one : seen.valueList(element)) {
    if (!one.value) {
      values.push_back(json::Object{{"text", one.text}});
      continue;
    }
    Expected<json::Value> number = json::parse(*one.value);
    values.push_back(json::Object{{"expression", one.text},
                                  {"value", number ? *number : json::Value(*one.value)}});
    consumeError(number.takeError());
  }
  return json::Object{{"place", seen.observation().place},
                      {"statement", seen.observation().text},
                      {"indices", std::move(indices)},
                      {"values", std::move(values)}};
}

std::string Observed::json(unsigned points) const {
  json::Array prints;
  for (const Point &point : printed(points))
    prints.push_back(pointJson(all[point.statement], point.moment.element));
  json::Object result{{"schema", "tegula.observed"}, {"version", 1}, {"prints", std::move(prints)}};
  int64_t more = 0;
  for (const Seen &seen : all)
    if (seen.kind() == Observation::Print)
      more += std::max<int64_t>(0, seen.count() - points);
  result["more_prints"] = more;
  result["failure"] = nullptr;
  if (std::optional<Point> point = firstFailure()) {
    const Seen &seen = all[point->statement];
    json::Object failure = pointJson(seen, point->moment.element);
    failure["kind"] = seen.kind() == Observation::Assert ? "assert" : "watch";
    failure["message"] = seen.observation().statement.message;
    failure["points"] = seen.count();
    result["failure"] = std::move(failure);
  }
  std::string text;
  raw_string_ostream(text) << json::Value(std::move(result));
  return text;
}

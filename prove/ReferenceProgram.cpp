//===- ReferenceProgram.cpp - Reads what a function was taken apart into -------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/ReferenceProgram.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/Endian.h"
#include <limits>

using namespace llvm;
using namespace tegula;
using namespace tegula::prove;

int64_t Instruction::count() const {
  int64_t count = 1;
  for (int64_t dim : shape)
    count *= dim;
  return count;
}

/// A number, or the name of an infinity or nan, which JSON has not.
static double numberOf(const json::Value &value) {
  if (std::optional<double> number = value.getAsNumber())
    return *number;
  StringRef text = value.getAsString().value_or("nan");
  double infinity = std::numeric_limits<double>::infinity();
  return text == "nan"           ? std::numeric_limits<double>::quiet_NaN()
         : text.starts_with("-") ? -infinity
                                 : infinity;
}

static DType integerType(StringRef name) {
  for (DType type : {DType::Bool, DType::U8, DType::I8, DType::I16, DType::I32})
    if (name == tegula::toString(type))
      return type;
  return DType::I64;
}

static bool readTable(const json::Value &text, std::vector<int32_t> &table) {
  std::vector<char> bytes;
  if (Error error = decodeBase64(text.getAsString().value_or("?"), bytes)) {
    consumeError(std::move(error));
    return false;
  }
  for (size_t at = 0; at + 4 <= bytes.size(); at += 4)
    table.push_back(int32_t(support::endian::read32le(&bytes[at])));
  return bytes.size() % 4 == 0;
}

namespace {
class Reader {
public:
  explicit Reader(ReferenceProgram &program) : program(program) {}

  /// False where a key is missing or names what is not there.
  bool instruction(const json::Object &given) {
    Instruction &one = program.instructions.emplace_back();
    one.op = given.getString("op").value_or("");
    one.fn = given.getString("fn").value_or("");
    one.name = given.getString("name").value_or("");
    one.isFloat = given.getBoolean("float").value_or(false);
    one.isDescending = given.getBoolean("descending").value_or(false);
    one.dtype = one.isFloat ? DType::F32 : integerType(given.getString("dtype").value_or(""));
    one.n = given.getInteger("n").value_or(1);
    one.take = given.getInteger("take").value_or(0);
    one.correction = int64_t(given.getNumber("correction").value_or(0));
    if (given.getNumber("correction").value_or(0) != double(one.correction))
      one.correction = -1; // which is not known
    one.batch = size_t(given.getInteger("b").value_or(0));
    one.m = size_t(given.getInteger("m").value_or(0));
    one.k = size_t(given.getInteger("k").value_or(0));
    const json::Array *shape = given.getArray("shape");
    if (!shape)
      return false;
    for (const json::Value &dim : *shape)
      one.shape.push_back(dim.getAsInteger().value_or(0));
    if (const json::Array *in = given.getArray("in"))
      for (const json::Value &value : *in)
        one.in.push_back(unsigned(value.getAsInteger().value_or(-1)));
    auto isBefore = [&](unsigned value) { return value + 1 < program.instructions.size(); };
    return all_of(one.in, isBefore) && readPlaces(given, one) && readValues(given, one);
  }

private:
  bool readPlaces(const json::Object &given, Instruction &one) {
    if (one.op != "gather")
      return true;
    std::optional<int64_t> table = given.getInteger("index");
    const json::Value *fill = given.get("fill");
    if (!table || !fill || size_t(*table) >= program.tables.size())
      return false;
    one.places = &program.tables[size_t(*table)];
    one.fill = numberOf(*fill);
    return one.places->size() == size_t(one.count());
  }

  static bool readValues(const json::Object &given, Instruction &one) {
    if (one.op != "const")
      return true;
    auto add = [&](const json::Value &value) {
      if (one.isFloat)
        one.values.push_back(numberOf(value));
      else
        one.integers.push_back(value.getAsInteger().value_or(0));
    };
    if (const json::Value *same = given.get("same")) {
      add(*same);
      return true;
    }
    const json::Array *values = given.getArray("values");
    if (!values || values->size() != size_t(one.count()))
      return false;
    for (const json::Value &value : *values)
      add(value);
    return true;
  }

  ReferenceProgram &program;
};
} // namespace

void ReferenceProgram::findUses() {
  constexpr unsigned never = std::numeric_limits<unsigned>::max();
  lastUses.assign(instructions.size(), never);
  isView.clear();
  for (const Instruction &one : instructions)
    isView.push_back(one.op == "gather" && one.isFloat);
  for (auto [place, one] : enumerate(instructions))
    for (unsigned value : one.in) {
      lastUses[value] = unsigned(place);
      isView[value] = isView[value] && one.op == "bmm";
    }
  for (unsigned at : outputs) {
    lastUses[at] = never;
    isView[at] = false;
  }
  for (auto [place, one] : enumerate(instructions))
    for (unsigned value : one.in)
      if (isView[place])
        lastUses[value] = std::max(lastUses[value], lastUses[place]);
}

std::unique_ptr<ReferenceProgram> ReferenceProgram::read(const json::Object &answer,
                                                         std::string &message) {
  auto program = std::make_unique<ReferenceProgram>();
  message = "the trace's answer has no such form";
  const json::Array *instructions = answer.getArray("program"), *tables = answer.getArray("tables"),
                    *outputs = answer.getArray("outputs");
  if (!instructions || !tables || !outputs)
    return nullptr;
  for (const json::Value &text : *tables)
    if (!readTable(text, program->tables.emplace_back()))
      return nullptr;
  Reader reader(*program);
  for (const json::Value &value : *instructions)
    if (!value.getAsObject() || !reader.instruction(*value.getAsObject()))
      return nullptr;
  for (const json::Value &place : *outputs) {
    auto at = size_t(place.getAsInteger().value_or(-1));
    if (at >= program->instructions.size())
      return nullptr;
    program->outputs.push_back(unsigned(at));
  }
  program->findUses();
  program->findDecided();
  message.clear();
  return program;
}

//===- InstanceArgs.cpp - Sizes, constants and types given on the command line ----===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/InstanceArgs.h"
#include "bench/reference/RefFile.h"
#include "strategies/contraction/plan/TensorTile.h"
#include "strategies/product_reduction/plan/ProductReduction.h"
#include "strategies/skinny_product/plan/SkinnyProduct.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <set>

using namespace llvm;

namespace tegula {

/// `a=1,b=2,3` as (a, [1]), (b, [2, 3]).
static bool split(StringRef text,
                  SmallVectorImpl<std::pair<StringRef, SmallVector<StringRef>>> &entries) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    if (part.contains('=')) {
      auto [name, value] = part.split('=');
      entries.push_back({name.trim(), {value.trim()}});
    } else if (!entries.empty()) {
      entries.back().second.push_back(part.trim());
    }
    bool isMissing =
        entries.empty() || entries.back().first.empty() || entries.back().second.back().empty();
    if (isMissing) {
      errs() << "tegula: expected NAME=VALUE, got '" << text << "'\n";
      return false;
    }
  }
  return true;
}

bool givenTwice(const Twine &what) {
  errs() << "tegula: " << what << " is given twice\n";
  return false;
}

bool parseSizes(ArrayRef<std::string> texts, std::map<std::string, int64_t> &sizes) {
  for (StringRef text : texts) {
    SmallVector<std::pair<StringRef, SmallVector<StringRef>>> entries;
    if (!split(text, entries))
      return false;
    for (const auto &[name, values] : entries) {
      int64_t value;
      if (values.size() != 1 || values.front().getAsInteger(10, value) || value < 0) {
        errs() << "tegula: expected a size of 0 or more, got '" << name << "=" << join(values, ",")
               << "'\n";
        return false;
      }
      if (!sizes.try_emplace(name.str(), value).second) {
        return givenTwice("the size '" + name + "'");
      }
    }
  }
  return true;
}

bool parseConstants(ArrayRef<std::string> texts, decltype(InstanceOptions::constants) &constants) {
  for (StringRef text : texts) {
    SmallVector<std::pair<StringRef, SmallVector<StringRef>>> entries;
    if (!split(text, entries))
      return false;
    for (const auto &[name, values] : entries) {
      if (constants.contains(name.str())) {
        return givenTwice("the constant '" + name + "'");
      }
      std::vector<int64_t> integers;
      for (StringRef value : values)
        if (int64_t integer; !value.getAsInteger(10, integer))
          integers.push_back(integer);
      double number;
      if (integers.size() == values.size() && values.size() > 1)
        constants[name.str()] = integers;
      else if (integers.size() == values.size())
        constants[name.str()] = integers.front();
      else if (values.size() == 1 && (values.front() == "true" || values.front() == "false"))
        constants[name.str()] = values.front() == "true";
      else if (values.size() == 1 && !values.front().getAsDouble(number))
        constants[name.str()] = number;
      else {
        errs() << "tegula: expected a number, true, false or a list of integers, got '" << name
               << "=" << join(values, ",") << "'\n";
        return false;
      }
    }
  }
  return true;
}

bool parseTypes(ArrayRef<std::string> texts, std::map<std::string, checked::DType> &types) {
  for (StringRef text : texts) {
    SmallVector<std::pair<StringRef, SmallVector<StringRef>>> entries;
    if (!split(text, entries))
      return false;
    for (const auto &[name, values] : entries) {
      auto type = checked::parseDType(values.front());
      if (values.size() != 1 || !type) {
        errs() << "tegula: expected an element type, got '" << name << "=" << join(values, ",")
               << "'\n";
        return false;
      }
      if (!types.try_emplace(name.str(), *type).second) {
        return givenTwice("the type '" + name + "'");
      }
    }
  }
  return true;
}

bool readSettings(std::initializer_list<llvm::ArrayRef<std::string>> lists,
                  std::vector<std::pair<std::string, std::string>> &settings) {
  for (llvm::ArrayRef<std::string> texts : lists)
    for (const std::string &text : texts) {
      std::string error;
      if (!bench::parseSettings(text, settings, error)) {
        llvm::errs() << "tegula: " << error << '\n';
        return false;
      }
    }
  std::set<llvm::StringRef> seen;
  for (const auto &[name, value] : settings)
    if (!seen.insert(name).second) {
      return givenTwice("'" + name + "'");
    }
  return true;
}

bool isPrecision(StringRef name) {
  if (name.empty() || checked::isPrecision(name))
    return true;
  errs() << "tegula: --precision takes " << checked::precisionNames << ", not '" << name << "'\n";
  return false;
}

bool isTensorTile(StringRef name) {
  std::vector<std::string> names = tensorTileNames();
  append_range(names, productTileNames());
  append_range(names, skinnyTileNames());
  SmallVector<StringRef> statements;
  name.split(statements, ',');
  for (StringRef statement : statements) {
    auto [shape, splits] = statement.split('/');
    unsigned count;
    bool isRight =
        shape.size() == statement.size() || (!splits.getAsInteger(10, count) && count > 0);
    if (statement.empty() || (isRight && is_contained(names, shape)))
      continue;
    errs()
        << "tegula: --tensor-tile takes one of " << join(names, ", ")
        << ", then perhaps /2 for blocks that share a sum, or a list of these by statement; not '"
        << statement << "'\n";
    return false;
  }
  return true;
}

} // namespace tegula

//===- FakeModule.h - What the driver that stands in knows of code -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_TEST_FAKECUDA_FAKEMODULE_H
#define TEGULA_TEST_FAKECUDA_FAKEMODULE_H

#include <map>
#include <memory>
#include <regex>
#include <string>
#include <vector>

namespace fakecuda {

struct Function {
  std::string name;
  std::vector<size_t> parameterBytes;
};
struct Module {
  std::map<std::string, std::unique_ptr<Function>> functions;
};

/// `.entry name( .param .u64 .ptr .global .align 1 name_0, .param .u32 name_1 )`
inline void readEntries(const std::string &ptx, Module &module) {
  static const std::regex entry("\\.entry\\s+([\\w$]+)\\s*\\(([^)]*)\\)"),
      parameter("\\.param\\s+\\.[a-z]+(\\d+)");
  for (std::sregex_iterator it(ptx.begin(), ptx.end(), entry), end; it != end; ++it) {
    auto function = std::make_unique<Function>();
    function->name = (*it)[1];
    std::string list = (*it)[2];
    for (std::sregex_iterator one(list.begin(), list.end(), parameter); one != end; ++one)
      function->parameterBytes.push_back(std::stoul((*one)[1]) / 8);
    module.functions[function->name] = std::move(function);
  }
}

} // namespace fakecuda

#endif // TEGULA_TEST_FAKECUDA_FAKEMODULE_H

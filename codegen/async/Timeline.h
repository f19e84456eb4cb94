//===- Timeline.h - Marks in time of what a launch does -----------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tensor of i64 takes the marks. Its first word counts the words that are taken. The first lane
// of each warp takes a chunk of `chunkWords` of it:
//
//   word 0  number of the function, from 1      4, 5  %globaltimer and %clock64 where it begins
//        1  number of the block                 6, 7  the same where it ends
//        2  number of the warp in its block     8     marks, which may be more than there is room
//        for 3  %smid                               9...  of each mark: %clock64, its number
//
// A warp that finds no room takes none. Operations have two marks, before and after, or one.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_ASYNC_TIMELINE_H
#define TEGULA_CODEGEN_ASYNC_TIMELINE_H

#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace llvm {
class Module;
} // namespace llvm

namespace tegula::async {

/// What marks stand for.
struct Timeline {
  /// The argument of a kernel, and of the device functions, that takes the marks.
  static constexpr llvm::StringLiteral tensorName = "timeline.marks";
  static constexpr int64_t words = int64_t(1) << 20;
  static constexpr unsigned headerWords = 9, maxMarks = 250;
  static constexpr unsigned chunkWords = headerWords + 2 * maxMarks;

  std::vector<std::string> functions;
  struct Mark {
    enum Kind { Begin, End, Instant } kind;
    std::string text; // `wait for a full stage`
  };
  std::vector<Mark> marks;
};

/// Puts marks into all device functions with an argument of that name: where they begin and end,
/// and around what they wait for. Asynchronous operations have not been lowered.
Timeline markTimeline(llvm::Module &module);

} // namespace tegula::async

#endif // TEGULA_CODEGEN_ASYNC_TIMELINE_H

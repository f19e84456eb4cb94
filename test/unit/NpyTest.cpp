//===- NpyTest.cpp - Reading and writing .npy files ------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Npy.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace tegula;
using testing::HasSubstr;

namespace {

/// A file of version 1 (or `major`) with this dict and this many zero bytes of data.
std::string file(const std::string &dict, size_t bytes, char major = 1) {
  std::string text = "\x93NUMPY";
  text += {major, '\0', char(dict.size() & 255), char(dict.size() >> 8)};
  if (major > 1)
    text += {'\0', '\0'};
  return text + dict + std::string(bytes, '\0');
}

std::string dict(const std::string &descr, const std::string &shape, const char *order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

std::string errorOf(const std::string &text) {
  std::string error;
  EXPECT_FALSE(parseNpy(text, error));
  EXPECT_NE(error, "");
  return error;
}

struct Folder {
  llvm::SmallString<64> path;
  Folder() { EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("npy", path)); }
  ~Folder() { llvm::sys::fs::remove_directories(path); }
  std::string operator/(const char *name) { return (path + "/" + name).str(); }
  unsigned entries() {
    std::error_code code;
    unsigned count = 0;
    for (llvm::sys::fs::directory_iterator it(path, code), end; it != end; it.increment(code))
      ++count;
    return count;
  }
};

} // namespace

TEST(Npy, ReadsWhatItWrites) {
  Folder folder;
  std::string error;
  struct Case {
    const char *type;
    std::vector<int64_t> shape;
    size_t bytes;
  };
  for (const Case &c : {Case{"f4", {2, 3}, 24}, Case{"b1", {}, 1}, Case{"V2", {5}, 10},
                        Case{"i8", {0, 7}, 0}, Case{"f8", {1, 1, 1, 2}, 16}, Case{"V1", {3}, 3}}) {
    std::vector<char> data;
    for (size_t i = 0; i < c.bytes; ++i)
      data.push_back(char(i * 37));
    ASSERT_TRUE(writeNpy(folder / "x.npy", c.type, c.shape, data, error)) << error;
    std::optional<NpyArray> array = readNpy(folder / "x.npy", error);
    ASSERT_TRUE(array) << error;
    EXPECT_EQ(array->type, c.type);
    EXPECT_EQ(array->shape, c.shape);
    EXPECT_EQ(array->data, data);
    EXPECT_EQ(folder.entries(), 1u);
  }
}

TEST(Npy, ReadsEveryVersion) {
  std::string error;
  for (char major : {1, 2, 3}) {
    std::optional<NpyArray> array = parseNpy(file(dict("<f4", "(3,)"), 12, major), error);
    ASSERT_TRUE(array) << error;
    EXPECT_EQ(array->shape, std::vector<int64_t>{3});
  }
}

TEST(Npy, ReadsFortranOrderWhereThereIsOnlyOneOrder) {
  std::string error;
  EXPECT_TRUE(parseNpy(file(dict("<f4", "(1, 3)", "True"), 12), error)) << error;
  EXPECT_THAT(errorOf(file(dict("<f4", "(2, 3)", "True"), 24)), HasSubstr("np.ascontiguousarray"));
}

TEST(Npy, RefusesTypesThatItDoesNotHave) {
  EXPECT_THAT(errorOf(file(dict(">f4", "(3,)"), 12)), HasSubstr("x.astype('<f4')"));
  EXPECT_THAT(errorOf(file(dict("|O", "(3,)"), 24)), HasSubstr("Python objects"));
  EXPECT_THAT(errorOf(file(dict("<c8", "(3,)"), 24)), HasSubstr("'<c8'"));
  EXPECT_THAT(errorOf(file(dict("<U4", "(3,)"), 48)), HasSubstr("'<U4'"));
  EXPECT_THAT(errorOf(file(dict("", "(3,)"), 12)), HasSubstr("''"));
  EXPECT_THAT(errorOf(file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}", 12)),
              HasSubstr("records"));
}

TEST(Npy, RefusesFilesThatAreNotWhatTheySay) {
  std::string good = file(dict("<f4", "(2, 3)"), 24);
  EXPECT_THAT(errorOf(""), HasSubstr("no .npy file"));
  EXPECT_THAT(errorOf("\x93NUMPX"), HasSubstr("no .npy file"));
  for (size_t length = 6; length < good.size(); ++length)
    errorOf(good.substr(0, length));
  EXPECT_THAT(errorOf(good + "x"), HasSubstr("needs 24 bytes; the file has 25"));
  EXPECT_THAT(errorOf(file(dict("<f4", "(2, 3)"), 24, 9)), HasSubstr("version 9"));
}

TEST(Npy, RefusesHostileHeaders) {
  // Sizes whose product leaves 64 bits, also where the wrapped product would fit the file.
  EXPECT_THAT(errorOf(file(dict("<f4", "(4294967296, 4294967296)"), 0)), HasSubstr("2^63"));
  EXPECT_THAT(errorOf(file(dict("<f4", "(99999999999999999999,)"), 0)), HasSubstr("64-bit"));
  EXPECT_THAT(errorOf(file(dict("<f4", "(-1,)"), 0)), HasSubstr("64-bit"));
  EXPECT_THAT(errorOf(file(dict("<f4", "(2 3)"), 24)), HasSubstr("expected ')'"));
  std::string ones = "(";
  for (int i = 0; i < 65; ++i)
    ones += "1,";
  EXPECT_THAT(errorOf(file(dict("<f4", ones + ")"), 4)), HasSubstr("64 dims"));
  EXPECT_THAT(errorOf(file(std::string(20000, ' '), 0)), HasSubstr("20000 bytes long"));
  EXPECT_THAT(errorOf(file("{'descr': '<f4', 'descr': '<f4'}", 0)), HasSubstr("twice"));
  EXPECT_THAT(errorOf(file("{'descr': '<f4'}", 0)), HasSubstr("lacks"));
  EXPECT_THAT(errorOf(file("{'x': __import__('os')}", 0)), HasSubstr("unknown key"));
  std::string huge = file("", 0, 2);
  for (size_t i = 8; i < 12; ++i)
    huge[i] = '\xff';
  EXPECT_THAT(errorOf(huge), HasSubstr("4294967295 bytes long"));
}

TEST(Npy, LeavesNothingWhereItCannotWrite) {
  Folder folder;
  std::string error;
  std::vector<char> data(1 << 20);
  EXPECT_FALSE(writeNpy(folder / "missing/x.npy", "i1", {1 << 20}, data, error));
  EXPECT_THAT(error, HasSubstr("missing/x.npy"));
  EXPECT_FALSE(writeNpy("/dev/full", "i1", {1 << 20}, data, error));
  EXPECT_THAT(error, HasSubstr("/dev/full"));
  EXPECT_EQ(folder.entries(), 0u);
  EXPECT_FALSE(readNpy(folder / "x.npy", error));
  EXPECT_FALSE(readNpy(folder.path, error));
}

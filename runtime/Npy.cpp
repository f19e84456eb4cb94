//===- Npy.cpp - Arrays in NumPy's file format ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Npy.h"
#include "support/HostMemory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace llvm;

namespace tegula {
namespace {

constexpr char magic[] = "\x93NUMPY";
constexpr size_t magicBytes = 6;
/// NumPy itself refuses to evaluate headers above 10,000 bytes.
constexpr size_t maxHeaderBytes = 10000;
constexpr size_t maxRank = 64;

constexpr const char *types[] = {"f8", "f4", "f2", "i8", "i4", "i2", "i1",
                                 "u8", "u4", "u2", "u1", "b1", "V1", "V2"};

/// The dict of the header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
struct Header {
  std::string descr;
  bool fortranOrder = false;
  std::vector<int64_t> shape;
};

/// A recursive-descent reader of that dict, a literal of Python's.
class HeaderReader {
public:
  HeaderReader(StringRef text, std::string &error) : rest(text), error(error) {}

  bool read(Header &header) {
    bool descr = false, order = false, shape = false;
    if (!expect('{'))
      return false;
    while (!accept('}')) {
      std::string key;
      if (!string(key) || !expect(':'))
        return false;
      bool *seen = key == "descr"           ? &descr
                   : key == "fortran_order" ? &order
                   : key == "shape"         ? &shape
                                            : nullptr;
      if (!seen || *seen)
        return fail(seen ? "has '" + key + "' twice" : "has an unknown key '" + key + "'");
      *seen = true;
      if (seen == &descr   ? !dtype(header.descr)
          : seen == &order ? !boolean(header.fortranOrder)
                           : !tuple(header.shape))
        return false;
      if (!accept(',')) {
        if (!expect('}'))
          return false;
        break;
      }
    }
    skip();
    if (!rest.empty())
      return fail("goes on after its end");
    if (!descr || !order || !shape)
      return fail("lacks 'descr', 'fortran_order' or 'shape'");
    return true;
  }

private:
  void skip() { rest = rest.ltrim(" \t\r\n\v\f"); }

  bool fail(const Twine &what) {
    error = ("the header " + what).str();
    return false;
  }

  bool accept(char c) {
    skip();
    return rest.consume_front(StringRef(&c, 1));
  }

  bool expect(char c) { return accept(c) || fail("is malformed: expected '" + Twine(c) + "'"); }

  bool string(std::string &value) {
    skip();
    if (rest.empty() || (rest[0] != '\'' && rest[0] != '"'))
      return fail("is malformed: expected a string");
    size_t end = rest.find(rest[0], 1);
    if (end == StringRef::npos || rest.slice(1, end).contains('\\'))
      return fail("is malformed: a string that does not end, or with a backslash");
    value = rest.slice(1, end).str();
    rest = rest.drop_front(end + 1);
    return true;
  }

  bool dtype(std::string &value) {
    skip();
    if (rest.starts_with("["))
      return fail("says that the elements are records; Tegula takes arrays of numbers");
    return string(value);
  }

  bool boolean(bool &value) {
    skip();
    value = rest.starts_with("True");
    return rest.consume_front("True") || rest.consume_front("False") ||
           fail("is malformed: expected True or False");
  }

  bool tuple(std::vector<int64_t> &values) {
    if (!expect('('))
      return false;
    while (!accept(')')) {
      skip();
      int64_t size;
      if (rest.empty() || !isDigit(rest[0]) || rest.consumeInteger(10, size))
        return fail("has a shape that is no tuple of 64-bit sizes");
      if (values.size() == maxRank)
        return fail("has a shape of more than " + Twine(maxRank) + " dims");
      values.push_back(size);
      if (!accept(',')) {
        if (!expect(')'))
          return false;
        break;
      }
    }
    return true;
  }

  StringRef rest;
  std::string &error;
};

/// `<f4` -> `f4`, or an error.
bool elementType(StringRef descr, std::string &type, std::string &error) {
  char order = descr.empty() ? '?' : descr[0];
  StringRef name = StringRef("<>=|").contains(order) ? descr.drop_front() : descr;
  if (name.starts_with("O")) {
    error = "the array holds Python objects, not numbers";
    return false;
  }
  if (!is_contained(types, name)) {
    error = ("dtype '" + descr +
             "' is none of Tegula's: expected f8, f4, f2, i8, i4, i2, i1, u8, u4, u2, u1, b1, "
             "V2 (bf16) or V1 (f8)")
                .str();
    return false;
  }
  if (order == '>' && !name.ends_with("1")) {
    error = ("the array is big-endian; write x.astype('<" + name + "')").str();
    return false;
  }
  type = name.str();
  return true;
}

/// Bytes of an array; nothing where the number does not fit into 63 bits.
std::optional<int64_t> arrayBytes(ArrayRef<int64_t> shape, int64_t width) {
  if (is_contained(shape, 0))
    return 0;
  int64_t bytes = width;
  for (int64_t size : shape)
    if (MulOverflow(bytes, size, bytes))
      return std::nullopt;
  return bytes;
}

std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text;
  raw_string_ostream stream(text);
  stream << '(';
  interleave(shape, stream, ", ");
  stream << (shape.size() == 1 ? ",)" : ")");
  return text;
}

bool writeAll(raw_fd_ostream &stream, StringRef header, ArrayRef<char> data, std::string &error) {
  stream << header;
  stream.write(data.data(), data.size());
  stream.flush();
  if (!stream.has_error())
    return true;
  error = stream.error().message();
  stream.clear_error();
  return false;
}

} // namespace

namespace {
/// What a file's header says.
struct Layout {
  NpyArray array;    // without data
  size_t begin = 0;  // of the data
  uint64_t size = 0; // of the data, in bytes
};
} // namespace

/// The layout by the file's first bytes; 12 and maxHeaderBytes of them are enough.
static std::optional<Layout> readLayout(StringRef bytes, std::string &error) {
  auto fail = [&](const Twine &why) {
    error = why.str();
    return std::nullopt;
  };
  if (!bytes.starts_with(StringRef(magic, magicBytes)))
    return fail("this is no .npy file: it does not begin with \\x93NUMPY");
  if (bytes.size() < magicBytes + 2)
    return fail("the file ends inside its header");
  unsigned major = static_cast<unsigned char>(bytes[magicBytes]);
  if (major < 1 || major > 3)
    return fail("version " + Twine(major) + " of the format is unknown; 1, 2 and 3 are read");
  // Version 1 has a 16-bit length, the later ones a 32-bit one, little-endian.
  size_t lengthBytes = major == 1 ? 2 : 4, begin = magicBytes + 2 + lengthBytes;
  if (bytes.size() < begin)
    return fail("the file ends inside its header");
  uint64_t length = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    length |= uint64_t(static_cast<unsigned char>(bytes[magicBytes + 2 + i])) << (8 * i);
  if (length > maxHeaderBytes)
    return fail("the header is " + Twine(length) + " bytes long; at most " + Twine(maxHeaderBytes) +
                " are read");
  if (bytes.size() - begin < length)
    return fail("the file ends inside its header");

  Header header;
  if (!HeaderReader(bytes.substr(begin, length), error).read(header))
    return std::nullopt;
  Layout layout;
  if (!elementType(header.descr, layout.array.type, error))
    return std::nullopt;
  layout.array.shape = std::move(header.shape);
  const std::vector<int64_t> &shape = layout.array.shape;
  // Without two dims of more than one element there is only one order.
  if (header.fortranOrder && count_if(shape, [](int64_t size) { return size != 1; }) > 1)
    return fail("the array is in Fortran order; write np.ascontiguousarray(x)");
  std::optional<int64_t> size = arrayBytes(shape, layout.array.type[1] - '0');
  if (!size)
    return fail("shape " + shapeText(shape) + " has more than 2^63 bytes");
  layout.begin = begin + length;
  layout.size = *size;
  return layout;
}

static std::string wrongSize(const Layout &layout, const Twine &found) {
  return ("shape " + shapeText(layout.array.shape) + " of " + layout.array.type + " needs " +
          Twine(layout.size) + " bytes; the file has " + found)
      .str();
}

std::optional<NpyArray> parseNpy(StringRef bytes, std::string &error) {
  std::optional<Layout> layout = readLayout(bytes, error);
  if (!layout)
    return std::nullopt;
  StringRef data = bytes.drop_front(layout->begin);
  if (data.size() != layout->size) {
    error = wrongSize(*layout, Twine(data.size()));
    return std::nullopt;
  }
  layout->array.data.assign(data.begin(), data.end());
  return std::move(layout->array);
}

std::optional<NpyArray> readNpy(StringRef path, std::string &error, bool *noMemory) {
  auto fail = [&](const Twine &why) {
    error = ("'" + path + "': " + why).str();
    return std::nullopt;
  };
  Expected<sys::fs::file_t> opened = sys::fs::openNativeFileForRead(path);
  if (!opened)
    return fail(errorToErrorCode(opened.takeError()).message());
  sys::fs::file_t file = *opened;
  llvm::scope_exit close([&] { sys::fs::closeFile(file); });
  // What no header announces is not read: a pipe or a device may never end.
  std::string failure;
  auto readUpTo = [&](MutableArrayRef<char> buffer) -> size_t {
    size_t count = 0;
    while (count != buffer.size()) {
      Expected<size_t> got = sys::fs::readNativeFile(file, buffer.drop_front(count));
      if (!got) {
        failure = errorToErrorCode(got.takeError()).message();
        break;
      }
      if (*got == 0)
        break;
      count += *got;
    }
    return count;
  };
  std::vector<char> head(magicBytes + 6 + maxHeaderBytes);
  head.resize(readUpTo(head));
  if (!failure.empty())
    return fail(failure);
  std::string why;
  std::optional<Layout> layout = readLayout(StringRef(head.data(), head.size()), why);
  if (!layout)
    return fail(why);
  sys::fs::file_status status;
  if (!sys::fs::status(file, status) && status.type() == sys::fs::file_type::regular_file &&
      status.getSize() - layout->begin != layout->size)
    return fail(wrongSize(*layout, Twine(status.getSize() - layout->begin)));
  // Twice: the array, and the tensor made of it.
  if (layout->size > availableMemory() / 2) {
    if (noMemory)
      *noMemory = true;
    return fail("there is no memory for its " + Twine(layout->size) + " bytes");
  }
  std::vector<char> &data = layout->array.data;
  size_t early = head.size() - layout->begin; // data that came with the header
  if (early > layout->size)
    return fail(wrongSize(*layout, Twine(early) + " or more"));
  data.resize(layout->size);
  std::copy(head.begin() + layout->begin, head.end(), data.begin());
  size_t count = early + readUpTo(MutableArrayRef<char>(data).drop_front(early));
  char more;
  bool isLonger = count == layout->size && readUpTo(MutableArrayRef<char>(&more, 1)) == 1;
  if (!failure.empty())
    return fail(failure);
  if (count != layout->size || isLonger)
    return fail(wrongSize(*layout, isLonger ? Twine("more") : Twine(count)));
  return std::move(layout->array);
}

bool writeNpy(StringRef path, StringRef type, ArrayRef<int64_t> shape, ArrayRef<char> data,
              std::string &error) {
  assert(is_contained(types, type) && "not a type of .npy files");
  assert(arrayBytes(shape, type[1] - '0') == int64_t(data.size()) && "data do not fit the shape");
  auto fail = [&](const Twine &why) {
    error = ("'" + path + "': " + why).str();
    return false;
  };
  std::string dict = ("{'descr': '" + Twine(type.ends_with("1") ? "|" : "<") + type +
                      "', 'fortran_order': False, 'shape': " + shapeText(shape) + ", }")
                         .str();
  // The data begin at a multiple of 64 bytes; the header ends with a newline.
  size_t begin = alignTo(magicBytes + 4 + dict.size() + 1, 64);
  dict.append(begin - magicBytes - 4 - dict.size() - 1, ' ');
  dict += '\n';
  std::string header(magic, magicBytes);
  header +=
      {'\x01', '\x00', static_cast<char>(dict.size() & 255), static_cast<char>(dict.size() >> 8)};
  header += dict;

  sys::fs::file_status status;
  if (!sys::fs::status(path, status) && sys::fs::exists(status) &&
      !sys::fs::is_regular_file(status)) {
    // A pipe or a device is written to, never replaced.
    std::error_code code;
    raw_fd_ostream stream(path, code);
    if (code)
      return fail(code.message());
    std::string why;
    return writeAll(stream, header, data, why) || fail(why);
  }
  auto file = sys::fs::TempFile::create(path + ".%%%%%%%%", sys::fs::all_read | sys::fs::all_write);
  if (!file)
    return fail(errorToErrorCode(file.takeError()).message());
  std::string why;
  {
    raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
    if (!writeAll(stream, header, data, why)) {
      consumeError(file->discard());
      return fail(why);
    }
  }
  if (Error failed = file->keep(path))
    return fail(errorToErrorCode(std::move(failed)).message());
  return true;
}

} // namespace tegula

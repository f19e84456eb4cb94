//===- Handles.h - The C interface's handles as Python's objects -------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The module is written against tegula.h alone. Failures become Python's exceptions, which
// tegula/_errors.py makes from status and message.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PYTHON_HANDLES_H
#define TEGULA_PYTHON_HANDLES_H

#include "tegula/tegula.h"
#include <memory>
#include <nanobind/nanobind.h>
// In every file of the module: where one casts a std::string without it, the linker may keep a cast
// that knows no strings for all of them.
#include <nanobind/stl/string.h>
#include <string>

namespace tegula::python {
namespace nb = nanobind;

template <auto function> struct Freed {
  template <typename Handle> void operator()(Handle *handle) const { function(handle); }
};

struct Context {
  std::unique_ptr<tegula_context, Freed<tegula_context_free>> handle;
};
struct Program {
  std::unique_ptr<tegula_program, Freed<tegula_program_free>> handle;
};
/// A kernel compiled for one device, types and constants.
struct Compiled {
  std::unique_ptr<tegula_kernel, Freed<tegula_free>> handle;
};

/// What one call of the C interface had to say.
class Message {
public:
  Message() = default;
  Message(const Message &) = delete;
  ~Message() { tegula_message_free(message); }
  operator tegula_message **() { return &message; }
  const char *json() const { return tegula_message_json(message); }
  const char *text() const { return tegula_message_text(message); }

private:
  tegula_message *message = nullptr;
};

/// What one launch has seen.
class Observed {
public:
  Observed() = default;
  Observed(const Observed &) = delete;
  ~Observed() { tegula_observed_free(observed); }
  operator tegula_observed **() { return &observed; }
  bool isGiven() const { return observed; }
  const char *json() const { return tegula_observed_json(observed); }
  const char *text() const { return tegula_observed_text(observed); }

private:
  tegula_observed *observed = nullptr;
};

/// `str(object)`, also of a result that was looked up just now, which `nb::str` would take for a
/// str.
inline std::string textOf(nb::handle object) {
  nb::str text(object);
  if (const char *bytes = text.c_str())
    return bytes;
  PyErr_Clear(); // half of a surrogate pair has no UTF-8
  return nb::steal<nb::str>(PyObject_ASCII(text.ptr())).c_str();
}

/// Raises what `_errors.error_of(status, json, text)` makes.
[[noreturn]] void raise(tegula_status status, const Message &message);
/// Raises a LaunchError in words of the binding's own.
[[noreturn]] void raiseWrongCall(const std::string &words);

inline void must(tegula_status status, const Message &message) {
  if (status != TEGULA_OK)
    raise(status, message);
}

} // namespace tegula::python

#endif // TEGULA_PYTHON_HANDLES_H

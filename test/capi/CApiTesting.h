//===- CApiTesting.h - The C interface in terms that tests use ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_TEST_CAPI_CAPITESTING_H
#define TEGULA_TEST_CAPI_CAPITESTING_H

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <tegula/tegula.h>
#include <vector>

struct Message {
  ~Message() { tegula_message_free(raw); }
  tegula_message **out() {
    tegula_message_free(raw);
    return &raw;
  }
  std::string text() const { return tegula_message_json(raw); }
  tegula_message *raw = nullptr;
};

template <auto release> struct Release {
  template <typename T> void operator()(T *handle) const { release(handle); }
};
using Context = std::unique_ptr<tegula_context, Release<tegula_context_free>>;
using Program = std::unique_ptr<tegula_program, Release<tegula_program_free>>;
using Kernel = std::unique_ptr<tegula_kernel, Release<tegula_free>>;

inline Context makeContext(unsigned threads = 0) {
  tegula_context_options options{};
  options.struct_bytes = sizeof(options);
  options.num_threads = threads;
  tegula_context *context = nullptr;
  EXPECT_EQ(tegula_context_create(&options, &context, nullptr), TEGULA_OK);
  return Context(context);
}

inline Program parse(const std::string &text) {
  tegula_program *program = nullptr;
  Message message;
  EXPECT_EQ(tegula_parse(text.data(), text.size(), "test.tgl", &program, message.out()), TEGULA_OK)
      << message.text();
  return Program(program);
}

inline tegula_compile_options compileOptions() {
  tegula_compile_options options{};
  options.struct_bytes = sizeof(options);
  return options;
}

inline Kernel compile(const Context &context, const Program &program,
                      tegula_compile_options options = compileOptions()) {
  tegula_kernel *kernel = nullptr;
  Message message;
  EXPECT_EQ(tegula_compile(context.get(), program.get(), &options, &kernel, message.out()),
            TEGULA_OK)
      << message.text();
  return Kernel(kernel);
}

inline tegula_value tensor(void *data, const std::vector<int64_t> &shape,
                           tegula_dtype dtype = TEGULA_F32) {
  tegula_value value{};
  value.data = data;
  value.shape = shape.data();
  value.rank = shape.size();
  value.dtype = dtype;
  return value;
}

/// An output whose shape the kernel decides.
inline tegula_value output(void *data, tegula_dtype dtype = TEGULA_F32) {
  tegula_value value{};
  value.data = data;
  value.dtype = dtype;
  return value;
}

inline tegula_status launch(const Kernel &kernel, const std::vector<tegula_value> &arguments,
                            Message *message = nullptr) {
  return tegula_launch(kernel.get(), arguments.data(), arguments.size(), nullptr,
                       message ? message->out() : nullptr);
}

inline const char *const addText = "kernel add(x: f32[N], y: f32[N]) -> (z: f32[N]) {\n"
                                   "  z[i] = x[i] + y[i]\n"
                                   "}\n";

#endif // TEGULA_TEST_CAPI_CAPITESTING_H

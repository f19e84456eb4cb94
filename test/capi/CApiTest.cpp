//===- CApiTest.cpp - libtegula as its users see it --------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Knows tegula.h and links the shared library, nothing else of Tegula.
//
//===----------------------------------------------------------------------===//
#include "CApiTesting.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using testing::ElementsAre;
using testing::HasSubstr;

namespace {

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

TEST(CApi, Versions) {
  EXPECT_STREQ(tegula_version(), TEGULA_VERSION);
  EXPECT_THAT(tegula_llvm_version(), HasSubstr("22."));
  EXPECT_STREQ(tegula_dtype_name(TEGULA_BF16), "bf16");
  EXPECT_EQ(tegula_dtype_bits(TEGULA_U4), 4u);
  EXPECT_EQ(tegula_dtype_name(static_cast<tegula_dtype>(99)), nullptr);
}

TEST(CApi, DescribesProgramsAsDeclared) {
  Program program =
      parse("kernel first(x: T[..., N]) -> (y: T[..., N]) { y[..., i] = x[..., i] }\n"
            "kernel second(x: f32[M, 3*M], b: f32[M] = 0, cache: inout i32[M], s: f32,\n"
            "              stride: int[2] = (1, 2), eps: float = 1e-5)\n"
            "    -> (y: f32[M]) {\n"
            "  y[i] = x[i, 0] * s + b[i] + eps * stride[0]\n"
            "  cache[i] = cache[i] + 1\n"
            "}\n");
  ASSERT_EQ(tegula_num_kernels(program.get()), 2u);
  EXPECT_STREQ(tegula_kernel_name(program.get(), 0), "first");
  EXPECT_STREQ(tegula_kernel_name(program.get(), 1), "second");
  EXPECT_EQ(tegula_kernel_name(program.get(), 2), nullptr);
  tegula_parameter_info x = tegula_parameter(program.get(), 0, 0);
  EXPECT_STREQ(x.type, "T");
  EXPECT_EQ(x.rank, 2u);
  EXPECT_STREQ(tegula_parameter_dim(program.get(), 0, 0, 0), "...");
  ASSERT_EQ(tegula_num_parameters(program.get(), 1), 7u);
  std::vector<int> roles;
  for (size_t i = 0; i < 7; ++i)
    roles.push_back(tegula_parameter(program.get(), 1, i).role);
  EXPECT_THAT(roles, ElementsAre(TEGULA_IN, TEGULA_IN, TEGULA_INOUT, TEGULA_SCALAR, TEGULA_CONSTANT,
                                 TEGULA_CONSTANT, TEGULA_OUT));
  EXPECT_STREQ(tegula_parameter_dim(program.get(), 1, 0, 1), "3*M");
  EXPECT_STREQ(tegula_parameter(program.get(), 1, 1).default_value, "0");
  EXPECT_EQ(tegula_parameter(program.get(), 1, 0).default_value, nullptr);
  EXPECT_STREQ(tegula_parameter(program.get(), 1, 4).default_value, "(1, 2)");
  EXPECT_EQ(tegula_parameter(program.get(), 1, 4).rank, 1u);
}

TEST(CApi, ReportsWrongProgramsAsJson) {
  tegula_program *program = nullptr;
  Message message;
  const char *text = "kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] && 1 }";
  EXPECT_EQ(tegula_parse(text, std::strlen(text), "k.tgl", &program, message.out()),
            TEGULA_WRONG_PROGRAM);
  EXPECT_EQ(program, nullptr);
  EXPECT_THAT(message.text(), HasSubstr("\"schema\":\"tegula.diagnostic\""));
  EXPECT_THAT(message.text(), HasSubstr("\"file\":\"k.tgl\""));
  EXPECT_EQ(message.text().back(), '\n');

  Program unknown = parse("kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = xx[i] }");
  EXPECT_EQ(tegula_check(unknown.get(), nullptr, message.out()), TEGULA_WRONG_PROGRAM);
  EXPECT_THAT(message.text(), HasSubstr("xx"));
  Context context = makeContext();
  tegula_kernel *kernel = nullptr;
  EXPECT_EQ(tegula_compile(context.get(), unknown.get(), nullptr, &kernel, message.out()),
            TEGULA_WRONG_PROGRAM);
  EXPECT_EQ(kernel, nullptr);
}

TEST(CApi, TakesAnyBytes) {
  for (std::string text : {std::string(), std::string("\0\0", 2), std::string("\xFF\xFE"),
                           std::string(2 << 20, 'x'), std::string(100000, '(')}) {
    tegula_program *program = nullptr;
    Message message;
    EXPECT_EQ(tegula_parse(text.data(), text.size(), nullptr, &program, message.out()),
              TEGULA_WRONG_PROGRAM);
    EXPECT_THAT(message.text(), HasSubstr("\"severity\":\"error\""));
  }
}

//===----------------------------------------------------------------------===//
// Wrong calls
//===----------------------------------------------------------------------===//

TEST(CApi, RefusesWhatIsNotThere) {
  Message message;
  EXPECT_EQ(tegula_context_create(nullptr, nullptr, message.out()), TEGULA_WRONG_CALL);
  EXPECT_THAT(message.text(), HasSubstr("\"code\":\"C0002\""));
  EXPECT_EQ(tegula_parse("", 0, nullptr, nullptr, nullptr), TEGULA_WRONG_CALL);
  tegula_kernel *kernel = nullptr;
  EXPECT_EQ(tegula_compile(nullptr, nullptr, nullptr, &kernel, nullptr), TEGULA_WRONG_CALL);
  EXPECT_EQ(tegula_launch(nullptr, nullptr, 0, nullptr, nullptr), TEGULA_WRONG_CALL);
  EXPECT_EQ(tegula_infer(nullptr, nullptr, 0, nullptr, nullptr, nullptr), TEGULA_WRONG_CALL);
  EXPECT_EQ(tegula_synchronize(nullptr, nullptr, nullptr), TEGULA_WRONG_CALL);
  EXPECT_EQ(tegula_num_kernels(nullptr), 0u);
  EXPECT_EQ(tegula_argument(nullptr, 0).name, nullptr);
  EXPECT_EQ(tegula_describe(nullptr), nullptr);
  EXPECT_STREQ(tegula_message_json(nullptr), "");
  tegula_free(nullptr);
  tegula_program_free(nullptr);
  tegula_context_free(nullptr);
  tegula_message_free(nullptr);
}

TEST(CApi, RefusesWrongOptions) {
  Context context = makeContext();
  Program program = parse("kernel k(x: T[..., N], b: f32[N] = 0, s: f32, eps: float = 1) "
                          "-> (y: T[..., N]) { y[..., i] = x[..., i] * s + b[i] + eps }");
  auto refused = [&](auto change) {
    tegula_compile_options options = compileOptions();
    change(options);
    tegula_kernel *kernel = nullptr;
    Message message;
    EXPECT_EQ(tegula_compile(context.get(), program.get(), &options, &kernel, message.out()),
              TEGULA_WRONG_CALL);
    EXPECT_EQ(kernel, nullptr);
    return message.text();
  };
  auto setting = [&](const char *name, const char *value) {
    tegula_setting one{name, value};
    return refused([&](tegula_compile_options &options) {
      options.settings = &one;
      options.num_settings = 1;
    });
  };
  EXPECT_THAT(refused([](auto &o) { o.struct_bytes = 0; }), HasSubstr("struct_bytes"));
  EXPECT_THAT(refused([](auto &o) { o.kernel = "none"; }), HasSubstr("no kernel 'none'"));
  EXPECT_THAT(refused([](auto &o) { o.target = "sm_70"; }), HasSubstr("sm_70"));
  EXPECT_THAT(refused([](auto &o) { o.num_settings = 1; }), HasSubstr("num_settings"));
  EXPECT_THAT(setting("Q", "4"), HasSubstr("'Q'"));
  EXPECT_THAT(setting("eps", "many"), HasSubstr("eps takes a number"));
  EXPECT_THAT(setting("T", "f33"), HasSubstr("f33"));
  Program needy = parse("kernel k(x: f32[N], n: int, e: float, b: bool) -> (y: f32[N]) { y[i] = "
                        "x[i]*n + e + where(b, 1, 0) }");
  std::swap(program, needy);
  EXPECT_THAT(setting("n", "2"), HasSubstr("needs 'e', a constant without a default"));
  EXPECT_THAT(refused([](auto &) {}), HasSubstr("needs 'n'"));
  std::swap(program, needy);
  EXPECT_THAT(setting("N", "-1"), HasSubstr("size of 0 or more"));
  EXPECT_THAT(setting("x", "1"), HasSubstr("is a tensor"));
  EXPECT_THAT(setting("s", "1"), HasSubstr("is a scalar"));
  EXPECT_THAT(setting("...", "(1, 2)"), HasSubstr("ellipsis_rank"));
  EXPECT_THAT(setting(nullptr, "1"), HasSubstr("no name"));
  const char *optional = "x";
  EXPECT_THAT(refused([&](auto &o) { o.optionals = &optional, o.num_optionals = 1; }),
              HasSubstr("no optional tensor or scalar 'x'"));
  const char *stage = "soup";
  EXPECT_THAT(refused([&](auto &o) { o.stages = &stage, o.num_stages = 1; }), HasSubstr("soup"));
}

TEST(CApi, WritesGradients) {
  Program program = parse("kernel k(x: T[N], w: T[N], b: f32[N] = 0, eps: float = 1) -> (y: T[N]) "
                          "{ y[i] = x[i]*w[i]*eps + b[i] }");
  tegula_gradient_options options = {};
  options.struct_bytes = sizeof(options);
  const char *wrt = "w", *leftOut = "b";
  tegula_setting setting{"eps", "3.0"};
  options.wrt = &wrt, options.num_wrt = 1;
  options.left_out = &leftOut, options.num_left_out = 1;
  options.settings = &setting, options.num_settings = 1;
  tegula_program *made = nullptr;
  Message message;
  ASSERT_EQ(tegula_gradient(program.get(), &options, &made, message.out()), TEGULA_OK)
      << message.text();
  EXPECT_STREQ(tegula_program_text(made),
               "# The gradients of k with respect to w\n"
               "kernel k_grad(x: T[N], grad_y: T[N]) -> (grad_w: T[N]) {\n"
               "  grad_w[i] = grad_y[i] * 3.0 * x[i]\n"
               "}\n");
  EXPECT_STREQ(tegula_kernel_name(made, 0), "k_grad");
  tegula_program_free(made);

  auto refused = [&](auto change) {
    tegula_gradient_options wrong = {};
    wrong.struct_bytes = sizeof(wrong);
    change(wrong);
    tegula_program *none = nullptr;
    EXPECT_EQ(tegula_gradient(program.get(), &wrong, &none, message.out()), TEGULA_WRONG_CALL);
    EXPECT_EQ(none, nullptr);
    return message.text();
  };
  EXPECT_THAT(refused([](auto &o) { o.struct_bytes = 0; }), HasSubstr("struct_bytes"));
  EXPECT_THAT(refused([](auto &o) { o.kernel = "none"; }), HasSubstr("no kernel 'none'"));
  EXPECT_THAT(refused([](auto &o) { o.num_wrt = 1; }), HasSubstr("is NULL"));
  const char *other = "x";
  EXPECT_THAT(refused([&](auto &o) { o.left_out = &other, o.num_left_out = 1; }),
              HasSubstr("no optional tensor or scalar 'x'"));
  EXPECT_EQ(tegula_gradient(nullptr, nullptr, &made, nullptr), TEGULA_WRONG_CALL);
  EXPECT_EQ(tegula_gradient(program.get(), nullptr, nullptr, nullptr), TEGULA_WRONG_CALL);
  EXPECT_EQ(tegula_program_text(nullptr), nullptr);

  Program without = parse("kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = digamma(x[i]) }");
  EXPECT_EQ(tegula_gradient(without.get(), nullptr, &made, message.out()), TEGULA_WRONG_PROGRAM);
  EXPECT_THAT(message.text(), HasSubstr("E0913"));
}

TEST(CApi, RefusesWrongArguments) {
  Kernel kernel = compile(makeContext(), parse(addText));
  float x[8] = {}, y[8] = {}, z[8] = {};
  std::vector<int64_t> eight = {8}, seven = {7}, square = {2, 4}, negative = {-1};
  Message message;
  auto refused = [&](std::vector<tegula_value> arguments) {
    EXPECT_EQ(launch(kernel, arguments, &message), TEGULA_WRONG_CALL);
    return message.text();
  };
  tegula_value good = tensor(x, eight), strided = tensor(y, eight), shapeless = tensor(y, eight);
  int64_t two = 2;
  strided.strides = &two;
  shapeless.shape = nullptr;
  EXPECT_EQ(launch(kernel, {good, tensor(y, eight), tensor(z, eight)}), TEGULA_OK);
  EXPECT_THAT(refused({good, good}), HasSubstr("takes 3 arguments, 2 given"));
  EXPECT_THAT(refused({good, tensor(y, seven), tensor(z, eight)}), HasSubstr("[7]"));
  EXPECT_THAT(refused({good, tensor(y, square), tensor(z, eight)}), HasSubstr("[2, 4]"));
  EXPECT_THAT(refused({tensor(x, negative), tensor(y, negative), output(z)}),
              HasSubstr("negative"));
  EXPECT_THAT(refused({good, tensor(y, eight, TEGULA_F64), tensor(z, eight)}), HasSubstr("f64"));
  EXPECT_THAT(refused({good, tensor(y, eight), tensor(z, eight, TEGULA_F16)}), HasSubstr("f16"));
  EXPECT_THAT(refused({good, tensor(y, eight), tensor(z, seven)}), HasSubstr("'z'"));
  EXPECT_THAT(refused({good, tensor(y, eight, static_cast<tegula_dtype>(77)), output(z)}),
              HasSubstr("77"));
  EXPECT_THAT(refused({good, strided, output(z)}), HasSubstr("not contiguous"));
  EXPECT_THAT(refused({good, shapeless, output(z)}), HasSubstr("no shape"));
  EXPECT_THAT(refused({good, tensor(nullptr, eight), output(z)}), HasSubstr("no memory"));
  EXPECT_THAT(refused({good, tensor(reinterpret_cast<char *>(y) + 1, {8}), output(z)}),
              HasSubstr("not aligned"));
  EXPECT_THAT(refused({good, tensor(y, eight), output(x)}), HasSubstr("overlap"));
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

TEST(CApi, CompilesWhatItIsTold) {
  Context context = makeContext();
  Program program = parse("kernel k(x: T[..., N], b: f32[N] = 0, s: f32, eps: float = 1) "
                          "-> (y: T[..., N]) { y[..., i] = x[..., i] * s + b[i] + eps }");
  tegula_compile_options options = compileOptions();
  tegula_setting settings[] = {{"T", "f16"}, {"eps", "0.5"}};
  const char *optional = "b";
  const char *stages[] = {"tgl", "llvm", "asm"};
  options.settings = settings;
  options.num_settings = 2;
  options.ellipsis_rank = 2;
  options.optionals = &optional;
  options.num_optionals = 1;
  options.stages = stages;
  options.num_stages = 3;
  Kernel kernel = compile(context, program, options);
  ASSERT_EQ(tegula_num_arguments(kernel.get()), 4u);
  tegula_argument_info x = tegula_argument(kernel.get(), 0);
  EXPECT_STREQ(x.name, "x");
  EXPECT_EQ(x.dtype, TEGULA_F16);
  EXPECT_EQ(x.rank, 3u);
  EXPECT_STREQ(tegula_argument_dim(kernel.get(), 0, 2), "N");
  EXPECT_EQ(tegula_argument_dim(kernel.get(), 0, 3), nullptr);
  EXPECT_EQ(tegula_argument(kernel.get(), 2).role, TEGULA_OUT);
  EXPECT_EQ(tegula_argument(kernel.get(), 3).role, TEGULA_SCALAR);
  EXPECT_THAT(tegula_describe(kernel.get()), HasSubstr("\"schema\":\"tegula.kernel\""));
  EXPECT_THAT(tegula_describe(kernel.get()), HasSubstr("{\"name\":\"eps\",\"value\":0.5}"));
  EXPECT_THAT(tegula_stage(kernel.get(), "tgl"), HasSubstr("tgl.kernel"));
  EXPECT_THAT(tegula_stage(kernel.get(), "llvm"), HasSubstr("define"));
  EXPECT_EQ(tegula_stage(kernel.get(), "scheduled"), nullptr);
  EXPECT_EQ(tegula_stage(kernel.get(), "ptx"), nullptr);

  // 2 * 1.5 + 1 + 0.5 in f16: 1.5 is 0x3E00, 4.5 is 0x4480.
  std::vector<uint16_t> in(6, 0x3E00), out(6);
  std::vector<float> bias(3, 1);
  std::vector<int64_t> shape = {1, 2, 3}, row = {3};
  tegula_value scalar{};
  scalar.number = 2;
  Message message;
  EXPECT_EQ(launch(kernel,
                   {tensor(in.data(), shape, TEGULA_F16), tensor(bias.data(), row),
                    output(out.data(), TEGULA_F16), scalar},
                   &message),
            TEGULA_OK)
      << message.text();
  EXPECT_THAT(out, testing::Each(0x4480));
}

TEST(CApi, ScalarsWithADefaultArePassedWhereNamed) {
  Context context = makeContext();
  Program program = parse("kernel k(x: f32[N], s: f32 = 2, n: i32 = 1) -> (y: f32[N]) "
                          "{ y[i] = x[i] * s + n }");
  float x[] = {1, 2}, y[2] = {};
  std::vector<int64_t> shape = {2};
  tegula_value s{};
  s.number = 0.5;
  tegula_compile_options options = compileOptions();
  Kernel byDefault = compile(context, program, options);
  EXPECT_EQ(tegula_num_arguments(byDefault.get()), 2u);
  Message message;
  EXPECT_EQ(launch(byDefault, {tensor(x, shape), output(y)}, &message), TEGULA_OK)
      << message.text();
  EXPECT_THAT(y, testing::ElementsAre(3, 5));
  const char *given = "s";
  options.optionals = &given;
  options.num_optionals = 1;
  Kernel passed = compile(context, program, options);
  EXPECT_EQ(tegula_num_arguments(passed.get()), 3u);
  EXPECT_EQ(launch(passed, {tensor(x, shape), output(y), s}, &message), TEGULA_OK)
      << message.text();
  EXPECT_THAT(y, testing::ElementsAre(1.5, 2));
}

TEST(CApi, ScalarsAreOfTheirType) {
  Context context = makeContext();
  Program program = parse(
      "kernel k(x: f32[N], a: u8, h: f16, w: u32) -> (y: f64[N]) { y[i] = f64(h) + a + f64(w) }");
  Kernel kernel = compile(context, program, compileOptions());
  float x[] = {0};
  double y[1] = {};
  std::vector<int64_t> shape = {1};
  auto launched = [&](int64_t a, double h, int64_t w, Message &message) {
    tegula_value one{}, half{}, word{};
    one.integer = a, half.number = h, word.integer = w;
    return launch(kernel, {tensor(x, shape), output(y, TEGULA_F64), one, half, word}, &message);
  };
  Message message;
  EXPECT_EQ(launched(255, 0.1, 4294967295, message), TEGULA_OK) << message.text();
  EXPECT_EQ(y[0], 0.0999755859375 + 255 + 4294967295.0);
  EXPECT_EQ(launched(256, 0, 0, message), TEGULA_WRONG_CALL);
  EXPECT_THAT(message.text(), HasSubstr("'a' is u8, from 0 to 255, got 256"));
  EXPECT_EQ(launched(0, 1e5, 0, message), TEGULA_WRONG_CALL);
  EXPECT_THAT(message.text(), HasSubstr("'h' is f16"));
  EXPECT_EQ(launched(0, 0, -1, message), TEGULA_WRONG_CALL);
}

TEST(CApi, KernelsOutliveTheirContextAndProgram) {
  Context context = makeContext(2);
  Program program = parse(addText);
  Kernel kernel = compile(context, program);
  context.reset();
  program.reset();
  std::vector<int64_t> shape = {1 << 20};
  std::vector<float> x(1 << 20, 1), y(1 << 20, 2), z(1 << 20);
  EXPECT_EQ(launch(kernel, {tensor(x.data(), shape), tensor(y.data(), shape), output(z.data())}),
            TEGULA_OK);
  EXPECT_THAT(z, testing::Each(3.0f));
}

TEST(CApi, InfersShapesAndDecidesGuards) {
  Kernel kernel =
      compile(makeContext(), parse("kernel k(x: f32[M, N], w: f32[K]) -> (y: f32[M, P], "
                                   "t: f32[N]) where P = N - K + 1 {\n"
                                   "  y[i, p] = sum(x[i, p + k] * w[k] for k)\n"
                                   "  t[j] = x[2, j]\n"
                                   "}"));
  ASSERT_GE(tegula_num_guards(kernel.get()), 1u);
  for (size_t i = 0; i < tegula_num_guards(kernel.get()); ++i)
    EXPECT_STRNE(tegula_guard(kernel.get(), i).condition, "");
  EXPECT_EQ(tegula_guard(kernel.get(), 99).condition, nullptr);
  std::vector<int64_t> x = {4, 10}, w = {3}, small = {2, 10};
  std::vector<tegula_value> arguments = {tensor(nullptr, x), tensor(nullptr, w), {}, {}};
  int64_t shapes[3] = {};
  size_t bytes = 77;
  Message message;
  EXPECT_EQ(tegula_infer(kernel.get(), arguments.data(), 4, shapes, &bytes, message.out()),
            TEGULA_OK)
      << message.text();
  EXPECT_THAT(shapes, ElementsAre(4, 8, 10));
  arguments[0].shape = small.data();
  EXPECT_EQ(tegula_infer(kernel.get(), arguments.data(), 4, shapes, &bytes, message.out()),
            TEGULA_WRONG_CALL);
  EXPECT_THAT(message.text(), HasSubstr("'x'"));
  // Again, now that the good sizes are remembered.
  EXPECT_EQ(tegula_infer(kernel.get(), arguments.data(), 4, shapes, &bytes, nullptr),
            TEGULA_WRONG_CALL);
}

TEST(CApi, UsesTheWorkspaceGiven) {
  // A temporary that is read in another order than it is made.
  Kernel kernel = compile(makeContext(), parse("kernel k(x: f32[M, N]) -> (y: f32[N, M]) {\n"
                                               "  h[i, j] = softmax(x[i, j], over=j)\n"
                                               "  y[j, i] = cumsum(h[i, j], over=i)\n"
                                               "}"));
  std::vector<int64_t> shape = {5, 7};
  std::vector<float> x(35, 1), y(35), again(35);
  std::vector<tegula_value> arguments = {tensor(x.data(), shape), output(y.data())};
  size_t bytes = 0;
  ASSERT_EQ(tegula_infer(kernel.get(), arguments.data(), 2, nullptr, &bytes, nullptr), TEGULA_OK);
  ASSERT_GE(bytes, 35 * sizeof(float));
  ASSERT_EQ(launch(kernel, arguments), TEGULA_OK);
  std::unique_ptr<char, decltype(&std::free)> memory(
      static_cast<char *>(std::aligned_alloc(256, (bytes + 255) / 256 * 256)), &std::free);
  std::memset(memory.get(), 0xAA, bytes);
  tegula_launch_options options{};
  options.struct_bytes = sizeof(options);
  options.workspace = memory.get();
  options.workspace_bytes = bytes;
  arguments[1] = output(again.data());
  ASSERT_EQ(tegula_launch(kernel.get(), arguments.data(), 2, &options, nullptr), TEGULA_OK);
  EXPECT_EQ(y, again);
  EXPECT_NEAR(y[4], 5.0 / 7, 1e-6);
  EXPECT_FALSE(
      std::all_of(memory.get(), memory.get() + bytes, [](char c) { return c == char(0xAA); }));
  // Too small a workspace is not used.
  std::memset(memory.get(), 0xAA, bytes);
  options.workspace_bytes = bytes - 1;
  ASSERT_EQ(tegula_launch(kernel.get(), arguments.data(), 2, &options, nullptr), TEGULA_OK);
  EXPECT_TRUE(
      std::all_of(memory.get(), memory.get() + bytes, [](char c) { return c == char(0xAA); }));
  options.workspace = memory.get() + 64;
  EXPECT_EQ(tegula_launch(kernel.get(), arguments.data(), 2, &options, nullptr), TEGULA_WRONG_CALL);
}

TEST(CApi, ReportsSubscriptsThatDataMadeWrong) {
  Kernel kernel = compile(makeContext(), parse("kernel k(t: f32[V], ids: i64[N]) -> (y: f32[N]) {\n"
                                               "  y[i] = t[ids[i]]\n"
                                               "}"));
  std::vector<float> table = {1, 2, 3}, y(3, 9);
  std::vector<int64_t> ids = {0, 5, 2}, three = {3};
  Message message;
  EXPECT_EQ(
      launch(kernel,
             {tensor(table.data(), three), tensor(ids.data(), three, TEGULA_I64), output(y.data())},
             &message),
      TEGULA_WRONG_RESULT);
  EXPECT_THAT(message.text(), HasSubstr("test.tgl:2:"));
  EXPECT_THAT(message.text(), HasSubstr("is 5"));
  EXPECT_THAT(y, ElementsAre(1, 0, 3));
  EXPECT_EQ(tegula_synchronize(kernel.get(), nullptr, nullptr), TEGULA_OK);
}

TEST(CApi, TakesEmptyTensorsAndUpdatesInPlace) {
  Kernel kernel = compile(makeContext(), parse("kernel k(x: f32[N], total: inout f32[1]) {\n"
                                               "  total[0] = total[0] + sum(x[i] for i)\n"
                                               "}"));
  std::vector<int64_t> none = {0}, one = {1}, two = {2};
  float x[2] = {1, 2}, total = 10;
  tegula_value sum = tensor(&total, one);
  EXPECT_EQ(launch(kernel, {tensor(nullptr, none), sum}), TEGULA_OK);
  EXPECT_EQ(total, 10);
  EXPECT_EQ(launch(kernel, {tensor(x, two), sum}), TEGULA_OK);
  EXPECT_EQ(total, 13);
}

TEST(CApi, MakesPtxWithoutADevice) {
  Program program = parse(addText);
  for (const char *target : {"sm_80", "sm_90a"}) {
    tegula_compile_options options = compileOptions();
    options.target = target;
    Kernel kernel = compile(makeContext(), program, options);
    ASSERT_NE(tegula_stage(kernel.get(), "ptx"), nullptr);
    EXPECT_THAT(tegula_stage(kernel.get(), "ptx"), HasSubstr(std::string(".target ") + target));
    std::vector<int64_t> shape = {4};
    Message message;
    EXPECT_EQ(
        launch(kernel, {tensor(nullptr, shape), tensor(nullptr, shape), output(nullptr)}, &message),
        TEGULA_WRONG_CALL);
    EXPECT_THAT(message.text(), HasSubstr("compile it for cuda"));
  }
}

TEST(CApi, OptionsMayBeThoseOfAnOlderHeader) {
  Context context = makeContext();
  Program program = parse(addText);
  tegula_compile_options options = compileOptions();
  // A caller that knows no member after `kernel`; what lies behind is not the library's to read.
  options.struct_bytes = offsetof(tegula_compile_options, target);
  options.target = reinterpret_cast<const char *>(8);
  EXPECT_NE(compile(context, program, options), nullptr);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

constexpr unsigned numThreads = 8;

void onManyThreads(const std::function<void(unsigned)> &work) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < numThreads; ++i)
    threads.emplace_back(work, i);
  for (std::thread &thread : threads)
    thread.join();
}

TEST(CApi, ThreadsCompileAndRunDifferentKernels) {
  // No context of before: the first compilations of the process may meet here.
  Context context = makeContext();
  const char *bodies[] = {"y[i, j] = x[i, j] + 1",
                          "y[i, j] = softmax(x[i, j], over=j)",
                          "y[i, j] = x[i, j] - max(x[i, k] for k)",
                          "y[i, j] = cumsum(x[i, j], over=j)",
                          "y[i, j] = sum(x[i, k] * x[j, k] for k)",
                          "h = softplus_(x)\n  y[i, j] = h[j, i]",
                          "y = layer_norm(x, N)",
                          "y = linear(x, x)"};
  onManyThreads([&](unsigned index) {
    std::string text =
        "kernel softplus_(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = softplus(x[i, j]) }\n"
        "kernel k(x: f32[N, N]) -> (y: f32[N, N]) {\n  " +
        std::string(bodies[index]) + "\n}\n";
    for (unsigned round = 0; round < 3; ++round) {
      Program program = parse(text);
      Kernel kernel = compile(context, program);
      ASSERT_NE(kernel, nullptr);
      std::vector<int64_t> shape = {64, 64};
      std::vector<float> x(64 * 64), first(64 * 64), y(64 * 64);
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = float(i % 17) / 8 - 1;
      ASSERT_EQ(launch(kernel, {tensor(x.data(), shape), output(first.data())}), TEGULA_OK);
      for (unsigned repeat = 0; repeat < 20; ++repeat) {
        ASSERT_EQ(launch(kernel, {tensor(x.data(), shape), output(y.data())}), TEGULA_OK);
        ASSERT_EQ(std::memcmp(y.data(), first.data(), y.size() * sizeof(float)), 0);
      }
      if (index == 0)
        EXPECT_EQ(y[5], x[5] + 1);
    }
    // Programs for other targets and wrong ones meanwhile.
    tegula_compile_options options = compileOptions();
    options.target = "sm_90a";
    EXPECT_NE(compile(context, parse(text), options), nullptr);
    Message message;
    Program wrong = parse("kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = z[i] }");
    EXPECT_EQ(tegula_check(wrong.get(), nullptr, message.out()), TEGULA_WRONG_PROGRAM);
  });
}

TEST(CApi, ThreadsLaunchOneKernel) {
  Kernel kernel = compile(makeContext(4), parse(addText));
  onManyThreads([&](unsigned index) {
    // More sizes than the kernel remembers, small ones and ones worth several threads.
    for (int64_t round = 0; round < 200; ++round) {
      int64_t size = 1 + (round * 37 + index) % 29 + (round % 50 == 0 ? 200000 : 0);
      std::vector<int64_t> shape = {size};
      std::vector<float> x(size, float(index)), y(size, float(round)), z(size);
      ASSERT_EQ(
          launch(kernel, {tensor(x.data(), shape), tensor(y.data(), shape), output(z.data())}),
          TEGULA_OK);
      ASSERT_EQ(z.front(), float(index + round));
      ASSERT_EQ(z.back(), float(index + round));
    }
  });
}

TEST(CApi, LaunchesStop) {
  for (unsigned threads : {1, 3}) {
    Kernel kernel =
        compile(makeContext(threads), parse("kernel k(x: f32[N]) -> (y: f32[N], z: f32[N]) {\n"
                                            "  y[i] = sum(sin(x[i]*j) for j in 100000)\n"
                                            "  z[i] = y[N - 1 - i]\n"
                                            "}\n"));
    std::vector<float> x(1000000), y(x.size()), z(x.size());
    std::vector<int64_t> large = {int64_t(x.size())}, small = {3};
    int stop = 0;
    tegula_launch_options options{};
    options.struct_bytes = sizeof(options);
    options.stop = &stop;
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    });
    Message message;
    std::vector<tegula_value> arguments = {tensor(x.data(), large), output(y.data()),
                                           output(z.data())};
    EXPECT_EQ(tegula_launch(kernel.get(), arguments.data(), 3, &options, message.out()),
              TEGULA_STOPPED); // of many minutes
    EXPECT_THAT(message.text(), testing::HasSubstr("was stopped"));
    stopper.join();
    // The pool goes on, for those that are stopped at once too.
    arguments[0] = tensor(x.data(), small);
    EXPECT_EQ(tegula_launch(kernel.get(), arguments.data(), 3, &options, nullptr), TEGULA_STOPPED);
    stop = 0;
    EXPECT_EQ(tegula_launch(kernel.get(), arguments.data(), 3, &options, nullptr), TEGULA_OK);
    EXPECT_EQ(z[0], 0.0f);
  }
}

} // namespace

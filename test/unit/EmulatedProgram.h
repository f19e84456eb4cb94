//===- EmulatedProgram.h - Programs as device code in the emulator -----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_TEST_UNIT_EMULATEDPROGRAM_H
#define TEGULA_TEST_UNIT_EMULATEDPROGRAM_H

#include "compiler/Compiler.h"
#include "runtime/emulator/Emulator.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"
#include <bit>
#include <gtest/gtest.h>

namespace tegula {

// Of several tests.
inline constexpr const char *productText = R"(
kernel product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) { c[i, j] = sum(a[i, k] * b[k, j] for k) }
)";
inline constexpr const char *brainText = R"(
kernel product(a: bf16[M, K], b: bf16[K, N]) -> (c: f32[M, N]) { c[i, j] = sum(a[i, k] * b[k, j] for k) }
)";
inline std::string attentionText(bool isCausal) {
  std::string score = "sum(q[g, i, e] * k[g, j, e] for e)";
  return R"(
kernel attend(q: bf16[G, S, D], k: bf16[G, N, D], v: bf16[G, N, D]) -> (o: f32[G, S, D])
{
  parallel g in G, i in S, d in D {
    state m = -1e30
    state l = 0.0
    state acc = 0.0
    for j in tiles(N) {
      s = )" +
         (isCausal ? "where(j <= i, " + score + ", -inf)" : score) +
         R"(
      m2 = maximum(m, max(s for j))
      p = exp(s - m2)
      r = exp(m - m2)
      l = l*r + sum(p for j)
      acc = acc*r + sum(bf16(p) * v[g, j, d] for j)
      m = m2
    }
    o[g, i, d] = acc / l
  }
}
)";
}
inline constexpr const char *stepsText = R"(
kernel steps(x: f32[T, B, H], w: f32[H, H], h0: f32[B, H]) -> (y: f32[T, B, H])
{
  state h[n in B, u in H] = h0[n, u]
  for t in T {
    h[n, u] = tanh(x[t, n, u] + sum(w[u, k] * h[n, k] for k))
    y[t, n, u] = h[n, u]
  }
}
)";

struct EmulatedProgram {
  std::string name;
  std::string text;
  std::map<std::string, int64_t> sizes;
  std::string tensorTile = {};
  unsigned redundant = 0;  // synchronisations that may be missing
  unsigned orders = 0;     // of execution to try
  bool isOneBlock = false; // of launches in tiles the first block alone is run
};

inline void PrintTo(const EmulatedProgram &program, std::ostream *out) { *out << program.name; }

/// A program of known sizes, compiled for the emulator, with inputs of its own.
class RunOfProgram {
public:
  using Bytes = std::vector<char>;

  explicit RunOfProgram(const EmulatedProgram &program)
      : sizes(program.sizes), diagnostics(sources) {
    Module module(sources, sources.add("program.tgl", program.text), diagnostics);
    CompileOptions options;
    options.target = "emulate";
    options.sizes = sizes;
    options.pipeline.tensorTile = program.tensorTile;
    options.keepStages = {"llvm"};
    auto compiled = compileKernel(module, options, diagnostics);
    EXPECT_TRUE(bool(compiled)) << (compiled ? "" : toString(compiled.takeError()));
    EXPECT_FALSE(diagnostics.hasErrors());
    kernel = std::move(*compiled);
    if (program.isOneBlock)
      for (PlanStep &step : kernel->plan.steps)
        for (PlanTileLaunch &launch : step.tiles.launches)
          launch.blocks = IndexExpr(int64_t(1));
    for (const KernelArgument &argument : kernel->arguments) {
      int64_t elements = 1;
      for (const IndexExpr &dim : argument.dims)
        elements *= *dim.evaluate([&](const IndexVar &var) { return size(var.name()); });
      unsigned bytes = *storageBytes(argument.dtype, {1});
      buffers.emplace_back(elements * bytes);
      for (int64_t i = 0; argument.role == KernelArgument::In && i < elements; ++i)
        write(buffers.back(), argument.dtype, i, bytes);
    }
  }

  /// The device code as it was compiled.
  std::unique_ptr<llvm::Module> parse(llvm::LLVMContext &context) const {
    llvm::SMDiagnostic diagnostic;
    std::unique_ptr<llvm::Module> module =
        parseAssemblyString(kernel->stages.at("llvm"), diagnostic, context);
    EXPECT_TRUE(module) << diagnostic.getMessage().str();
    return module;
  }

  /// What was found, if anything was, is in `kind` and `message`.
  std::vector<Bytes> run(const EmulatedCode &code, uint64_t seed) {
    std::vector<Bytes> memory = buffers;
    EmulatorInputs inputs;
    for (auto [argument, data] : llvm::zip_equal(kernel->arguments, memory))
      inputs.arguments.push_back({data.data(), data.size(),
                                  argument.role == KernelArgument::In ? BufferContents::Constant
                                                                      : BufferContents::Undefined});
    ErrorRecord errors;
    inputs.errors = &errors;
    inputs.size = [&](llvm::StringRef name) { return size(name); };
    EmulatorOptions options;
    options.seed = seed;
    kind.reset();
    handleAllErrors(
        emulatePlan(code, kernel->plan, inputs, options),
        [&](const EmulatorError &error) {
          kind = error.kind;
          message = error.message;
        },
        [&](const llvm::ErrorInfoBase &error) { ADD_FAILURE() << error.message(); });
    return memory;
  }

  std::unique_ptr<CompiledKernel> kernel;
  std::optional<EmulatorError::Kind> kind;
  std::string message;

private:
  std::optional<int64_t> size(llvm::StringRef name) const {
    auto found = sizes.find(name.str());
    return found == sizes.end() ? std::nullopt : std::optional(found->second);
  }

  static void write(Bytes &data, DType type, int64_t i, unsigned bytes) {
    uint32_t random = uint32_t(i * 2654435761u) >> 16;
    uint32_t bits = random & 0xbf; // of f8: below 2
    if (type == DType::F32 || type == DType::BF16)
      bits = std::bit_cast<uint32_t>(float(int(random % 509) - 254) / 128) >> (8 * (4 - bytes));
    std::memcpy(&data[i * bytes], &bits, bytes);
  }

  std::map<std::string, int64_t> sizes;
  SourceManager sources;
  Diagnostics diagnostics;
  std::vector<Bytes> buffers;
};

} // namespace tegula

#endif // TEGULA_TEST_UNIT_EMULATEDPROGRAM_H

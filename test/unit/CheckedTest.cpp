//===- CheckedTest.cpp - What checked code finds --------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The checker admits no program with such mistakes, so each is written as IR, emitted as checked
// host code and run.
//
//===----------------------------------------------------------------------===//
#include "codegen/common/AccessShape.h"
#include "codegen/common/Emitter.h"
#include "codegen/cpu/EmitHost.h"
#include "codegen/cpu/HostAbi.h"
#include "codegen/cpu/HostTarget.h"
#include "codegen/cpu/Jit.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include <gtest/gtest.h>

using namespace llvm;
using namespace tegula;

namespace {

void runOnThreads(HostRun *, ParallelBody, void *, int64_t, int64_t) {
  ADD_FAILURE() << "checked code runs on one thread";
}

void runHere(HostRun *run, ParallelBody body, void *frame, int64_t count, int64_t) {
  body(0, count, frame, run);
}

void *scratch(HostRun *, int64_t bytes) {
  static std::vector<char> space;
  space.assign(bytes + 64, char(0xA5));
  return reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(space.data()) + 63) &
                                  ~uintptr_t(63));
}

/// Runs statements on `%x: f32[N]` in, `%z: f32[N]` inout, `%y: f32[N]` out with N = 4 and `%c`, a
/// number. What is reported, or nothing. With `evenProved`: as code that is not checked, in
/// vectors, but for what was proved.
std::string run(StringRef body, bool evenProved = false) {
  std::string text = R"(
    tgl.kernel @k(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                  %z: !tgl.tensor<[N], f32> {tgl.name = "z", tgl.role = "inout"},
                  %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"})
        sizes [N = 0 : 0] {
      %c = arith.constant 1.0 : f32
  )" + body.str() + "}";
  mlir::MLIRContext context;
  context.loadDialect<tgl::TglDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return "the IR does not parse";
  LLVMContext llvmContext;
  Module code("test", llvmContext);
  const HostTarget &target = HostTarget::get();
  std::unique_ptr<TargetMachine> machine = target.createMachine();
  applyTarget(code, target, *machine);
  EmitterOptions options;
  options.vectorBytes = target.vectorBytes;
  options.checked = !evenProved;
  options.evenProved = evenProved;
  Expected<HostCode> host = emitHost(*module->getOps<tgl::KernelOp>().begin(), code, options);
  if (!host)
    return toString(host.takeError());
  if (verifyModule(code, &errs()))
    return "the LLVM IR does not verify";
  optimize(code, *machine);
  auto loaded = LoadedCode::load(emitObject(code, *machine));
  if (!loaded)
    return toString(loaded.takeError());
  Expected<void *> symbol = (*loaded)->lookup(host->function);
  if (!symbol)
    return toString(symbol.takeError());

  int64_t n = 4;
  std::vector<float> x{1, 2, 3, 4}, z{1, 2, 3, 4}, y(n, NAN);
  std::vector<void *> buffers = {x.data(), z.data(), y.data()};
  std::vector<std::vector<int64_t>> temporaries;
  for (const TemporaryInfo &temporary : host->temporaries) {
    auto bytes = tensorBytes(temporary.type, 64).evaluate([&](const IndexVar &) {
      return std::optional(n);
    });
    temporaries.emplace_back(*bytes / 8, 0x5A5A5A5A5A5A5A5A);
    buffers.push_back(temporaries.back().data());
  }
  // What leaves a tensor is reported and not held back: there is room on both sides.
  std::vector<std::vector<float>> room;
  for (unsigned tensor = 0; evenProved && tensor < 3; ++tensor) {
    room.emplace_back(64, 1.0f);
    buffers[tensor] = room.back().data() + 32;
  }
  HostRun run{{}, evenProved ? runHere : runOnThreads, scratch, nullptr};
  reinterpret_cast<KernelFunction>(*symbol)(buffers.data(), &n, nullptr, &run);
  if (run.errors.taken == ErrorRecord::None)
    return "";
  const ErrorSite &site = host->sites[run.errors.site];
  return site.tensor.empty()
             ? formatv("{0} at {1}", site.text, run.errors.value).str()
             : formatv("{0}[{1}] {2}", site.tensor, run.errors.value, site.text).str();
}

/// A statement that writes all of y.
constexpr const char *writeAll = R"(
  tgl.parallel (%i = 0 to N) { tgl.write %c, %y[%i] : f32, !tgl.tensor<[N], f32> }
)";

TEST(Checked, NothingIsReportedWhereNothingIsWrong) {
  EXPECT_EQ(run(writeAll), "");
  // An inout is defined from the beginning; a loop may write it again and again.
  EXPECT_EQ(run(std::string(writeAll) + R"(
    tgl.for %t = 0 to N {
      tgl.parallel (%i = 0 to N) {
        %v = tgl.read %z[%i] : !tgl.tensor<[N], f32>
        tgl.write %v, %z[%i] : f32, !tgl.tensor<[N], f32>
      }
    })"),
            "");
  // Sums meet at an element, and a point reads what it has written itself.
  EXPECT_EQ(run(std::string(writeAll) + R"(
    tgl.parallel (%i = 0 to N) { tgl.write add %c, %y[0] : f32, !tgl.tensor<[N], f32> }
    tgl.parallel (%i = 0 to N) {
      tgl.write %c, %z[%i] : f32, !tgl.tensor<[N], f32>
      tgl.parallel (%j = 0 to 3) {
        %v = tgl.read %z[%i] : !tgl.tensor<[N], f32>
      }
    })"),
            "");
}

TEST(Checked, AccessesOutside) {
  EXPECT_EQ(run(R"(
    tgl.parallel (%i = 0 to N) {
      %v = tgl.read %x[%i + 1] : !tgl.tensor<[N], f32>
      tgl.write %v, %y[%i] : f32, !tgl.tensor<[N], f32>
    })"),
            "a read at 4");
  EXPECT_EQ(run(std::string(writeAll) + R"(
    tgl.parallel (%i = 0 to N) { tgl.write %c, %y[%i - 1] : f32, !tgl.tensor<[N], f32> }
    )"),
            "a write at -1");
  // In a nest, behind the subscripts of a packed type, and not where a guard excludes the point.
  EXPECT_EQ(run(std::string(writeAll) + R"(
    tgl.parallel (%i = 0 to N) {
      %h = tgl.temp "h" : !tgl.tensor<[N, 2], i4>
      %o = arith.constant 1 : i32
      tgl.parallel (%j = 0 to 3) { tgl.write %o, %h[%i, %j] : i32, !tgl.tensor<[N, 2], i4> }
    })"),
            "a write at 2");
  EXPECT_EQ(run(std::string(writeAll) + R"(
    %false = arith.constant false
    tgl.parallel (%i = 0 to N) { tgl.write %c, %y[%i - 1] if %false : f32, !tgl.tensor<[N], f32> }
    )"),
            "");
}

TEST(Checked, AccessesThatWereProved) {
  EXPECT_EQ(run(writeAll, /*evenProved=*/true), "");
  EXPECT_EQ(run(R"(
    tgl.parallel (%i = 0 to N) {
      %v = tgl.read %x[%i + 1] : !tgl.tensor<[N], f32>
      tgl.write %v, %y[%i] : f32, !tgl.tensor<[N], f32>
    })",
                /*evenProved=*/true),
            "an access that was proved at 4");
  EXPECT_EQ(run(R"(
    tgl.parallel (%i = 0 to N) { tgl.write %c, %y[%i - 1] : f32, !tgl.tensor<[N], f32> }
    )",
                /*evenProved=*/true),
            "an access that was proved at -1");
  EXPECT_EQ(run(R"(
    tgl.parallel (%i = 0 to N) { tgl.write add %c, %z[N] : f32, !tgl.tensor<[N], f32> }
    )",
                /*evenProved=*/true),
            "an access that was proved at 4");
  // What data decides, and what a guard or a fill holds back, is no defect.
  EXPECT_EQ(run(R"(
    tgl.parallel (%i = 0 to N) {
      %v = tgl.read %x[%i + 1] fill %c : !tgl.tensor<[N], f32>
      %w = tgl.read %x[%i + 1] checked "x[i + 1]" : !tgl.tensor<[N], f32>
      tgl.write %v, %y[%i] : f32, !tgl.tensor<[N], f32>
    })",
                /*evenProved=*/true),
            "x[i + 1] at 4");
}

TEST(Checked, UndefinedReads) {
  const char *copy = R"(
    tgl.parallel (%i = 0 to N) {
      %v = tgl.read %h[%i] : !tgl.tensor<[N], f32>
      tgl.write %v, %y[%i] : f32, !tgl.tensor<[N], f32>
    })";
  EXPECT_EQ(run(std::string(R"(%h = tgl.temp "h" : !tgl.tensor<[N], f32>)") + copy),
            "h[0] is read before anything has defined it");
  EXPECT_EQ(run(std::string(R"(
    %h = tgl.temp "h" : !tgl.tensor<[N], f32>
    tgl.parallel (%i = 0 to N - 1) { tgl.write %c, %h[%i] : f32, !tgl.tensor<[N], f32> })") +
                copy),
            "h[3] is read before anything has defined it");
  // An output before it is written.
  EXPECT_EQ(run(std::string(R"(
    tgl.parallel (%i = 0 to N) {
      %v = tgl.read %y[%i] : !tgl.tensor<[N], f32>
      tgl.write %v, %z[%i] : f32, !tgl.tensor<[N], f32>
    })") + writeAll),
            "y[0] is read before anything has defined it");
}

TEST(Checked, TemporariesAreFresh) {
  // In each iteration of a loop,
  EXPECT_EQ(run(std::string(writeAll) + R"(
    tgl.for %t = 0 to 2 {
      %h = tgl.temp "h" : !tgl.tensor<[N], f32>
      tgl.parallel (%i = 0 to N - %t) { tgl.write %c, %h[%i] : f32, !tgl.tensor<[N], f32> }
      tgl.parallel (%i = 0 to N) { %v = tgl.read %h[%i] : !tgl.tensor<[N], f32> }
    })"),
            "h[3] is read before anything has defined it");
  // and at each point, whether on the stack or too large for it.
  for (const char *type : {"!tgl.tensor<[2], f32>", "!tgl.tensor<[10000], f32>"})
    EXPECT_EQ(run(std::string(writeAll) + formatv(R"(
      tgl.parallel (%i = 0 to N) {{
        %h = tgl.temp "h" : {0}
        %first = arith.constant 0 : index
        %isFirst = arith.cmpi eq, %i, %first : index
        tgl.write %c, %h[1] if %isFirst : f32, {0}
        %v = tgl.read %h[1] : {0}
      })",
                                                  type)
                                              .str()),
              "h[1] is read before anything has defined it")
        << type;
}

TEST(Checked, SumsNeedABeginning) {
  EXPECT_EQ(run(R"(
    tgl.parallel (%i = 0 to N) { tgl.write add %c, %y[%i] : f32, !tgl.tensor<[N], f32> })"),
            "y[0] is added to before anything has defined it");
}

TEST(Checked, TwoPointsDefineAnElement) {
  EXPECT_EQ(run(std::string(writeAll) + R"(
    tgl.parallel (%i = 0 to N) { tgl.write %c, %y[2] : f32, !tgl.tensor<[N], f32> })"),
            "y[2] is written by two points of a parallel");
  // of an inner parallel,
  EXPECT_EQ(run(std::string(writeAll) + R"(
    tgl.parallel (%i = 0 to N) {
      tgl.parallel (%j = 0 to 2) { tgl.write %c, %y[%i] : f32, !tgl.tensor<[N], f32> }
    })"),
            "y[0] is written by two points of a parallel");
  // of the outer one through inner ones,
  EXPECT_EQ(run(std::string(writeAll) + R"(
    tgl.parallel (%i = 0 to N) {
      tgl.parallel (%j = 0 to 2) { tgl.write %c, %y[%j] : f32, !tgl.tensor<[N], f32> }
    })"),
            "y[0] is written by two points of a parallel");
  // and a sum against a definition.
  EXPECT_EQ(run(std::string(writeAll) + R"(
    tgl.parallel (%i = 0 to N) {
      tgl.write add %c, %y[1] : f32, !tgl.tensor<[N], f32>
      tgl.write %c, %y[1] : f32, !tgl.tensor<[N], f32>
    })"),
            "y[1] is written by two points of a parallel");
  // Statements and iterations in order may write an element again.
  EXPECT_EQ(run(std::string(writeAll) + writeAll + R"(
    tgl.for %t = 0 to N { tgl.parallel (%i = 0 to 1) { tgl.write %c, %y[%i] : f32, !tgl.tensor<[N], f32> } }
    )"),
            "");
}

/// Points that meet write in one way, `any` the same bits.
TEST(Checked, WritesOfTwoKindsMeet) {
  auto both = [](StringRef first, StringRef second) {
    return std::string(writeAll) + formatv(R"(
    %two = arith.constant 2.0 : f32
    tgl.parallel (%i = 0 to N) {{
      tgl.write {0}, %y[1] : f32, !tgl.tensor<[N], f32>
      tgl.write {1}, %y[1] : f32, !tgl.tensor<[N], f32>
    })",
                                           first, second)
                                       .str();
  };
  std::string met = "y[1] is written by two points of a parallel";
  EXPECT_EQ(run(both("add %c", "max %c")), met);
  EXPECT_EQ(run(both("max %c", "min %c")), met);
  EXPECT_EQ(run(both("any %c", "add %c")), met);
  EXPECT_EQ(run(both("any %c", "any %two")), met);
  EXPECT_EQ(run(both("any %two", "any %two")), "");
  EXPECT_EQ(run(both("add %c", "add %two")), "");
  // Of one point both, of the others one.
  EXPECT_EQ(run(std::string(writeAll) + R"(
    %first = arith.constant 0 : index
    tgl.parallel (%i = 0 to N) {
      %isFirst = arith.cmpi eq, %i, %first : index
      tgl.write %c, %y[1] if %isFirst : f32, !tgl.tensor<[N], f32>
      tgl.write add %c, %y[1] : f32, !tgl.tensor<[N], f32>
    })"),
            met);
  // In turn, as statements or by the points of an inner parallel.
  EXPECT_EQ(run(std::string(writeAll) + R"(
    tgl.parallel (%i = 0 to N) {
      tgl.write %c, %y[%i] : f32, !tgl.tensor<[N], f32>
      tgl.parallel (%j = 0 to 3) { tgl.write add %c, %y[%i] : f32, !tgl.tensor<[N], f32> }
      tgl.parallel (%j = 0 to 3) { tgl.write max %c, %y[%i] : f32, !tgl.tensor<[N], f32> }
    })"),
            "");
}

TEST(Checked, APointReadsWhatAnotherWrote) {
  EXPECT_EQ(run(std::string(writeAll) + R"(
    tgl.parallel (%i = 0 to N - 1) {
      %v = tgl.read %z[%i] : !tgl.tensor<[N], f32>
      tgl.write %v, %z[%i + 1] : f32, !tgl.tensor<[N], f32>
    })"),
            "z[1] is read by one point of a parallel and written by another");
}

TEST(Checked, OutputsAreComplete) {
  EXPECT_EQ(run(R"(
    tgl.parallel (%i = 0 to N - 1) { tgl.write %c, %y[%i] : f32, !tgl.tensor<[N], f32> })"),
            "y[3] is never written");
  EXPECT_EQ(run(""), "y[0] is never written");
}

TEST(Checked, SortsReadWholeRows) {
  const char *rows = R"(
    %k = tgl.temp "k" : !tgl.tensor<[2, N], f32>
    %p = tgl.temp "p" : !tgl.tensor<[2, N], i64>
    tgl.parallel (%r = 0 to 2, %i = 0 to N) {
      %n = arith.index_cast %i : index to i64
      tgl.write %c, %k[%r, %i] : f32, !tgl.tensor<[2, N], f32>
      tgl.write %n, %p[%r, %i] if %mine : i64, !tgl.tensor<[2, N], i64>
    }
    tgl.parallel (%r = 0 to 2) {
      tgl.sort %k, %p[%r] : !tgl.tensor<[2, N], f32>, !tgl.tensor<[2, N], i64>
    })";
  auto with = [&](StringRef condition) {
    std::string text = rows;
    size_t at = text.find("tgl.write %c, %k");
    return run(std::string(writeAll) + text.insert(at, condition.str() + "\n      "));
  };
  EXPECT_EQ(with("%mine = arith.constant true"), "");
  EXPECT_EQ(with("%two = arith.constant 2 : index\n"
                 "%mine = arith.cmpi ne, %i, %two : index"),
            "p[2] is read before anything has defined it");
}

} // namespace

//===- Compiler.h - Compiles program text to a runnable kernel --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_COMPILER_COMPILER_H
#define TEGULA_COMPILER_COMPILER_H

#include "codegen/async/Timeline.h"
#include "codegen/common/Plan.h"
#include "codegen/cpu/HostAbi.h"
#include "codegen/cpu/Jit.h"
#include "codegen/emulate/Emulate.h"
#include "codegen/nvgpu/TileLayout.h"
#include "compiler/Explain.h"
#include "compiler/ScheduleChoice.h"
#include "compiler/Work.h"
#include "frontend/Check.h"
#include "frontend/lower/EmitIR.h"
#include "frontend/parse/Module.h"
#include "ir/DTypes.h"
#include "passes/Phases.h"
#include "passes/Pipeline.h"
#include "symbolic/Guards.h"
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tegula {

struct CompileOptions {
  InstanceOptions instance;
  EmitOptions emit;
  /// `cpu`; a device target such as `sm_90a` (isDeviceTarget); or `emulate`: code for a device of
  /// that kind, run on the host.
  std::string target = "cpu";
  /// The processor that `cpu` code is for, by LLVM's name for it; empty: this machine's.
  std::string processor;
  /// Sizes that are known, by symbol (those of `...` are E0, E1, ...): the code is for launches
  /// with these alone, which a guard checks.
  std::map<std::string, int64_t> sizes;
  /// Device code: what the addresses of all tensors are multiples of, which launches check; 0: of
  /// their elements alone. 16 makes the widest accesses possible.
  unsigned alignment = 0;
  /// Passes: which are left out, printed, counted. `machine` and `sizes` follow from the above.
  PipelineOptions pipeline;
  /// Schedule decisions that replace the cost model's.
  ScheduleChoice choice;
  /// Where `tegula tune` has kept a choice for this program, these sizes and `device`, it replaces
  /// `choice`.
  bool tuned = false;
  std::string device; // the driver's name for it, such as `NVIDIA H200`
  /// List what the schedule could have been (CompiledKernel::tiles).
  bool listTiles = false;
  /// Say what each launch does and why other strategies do not compute it
  /// (CompiledKernel::launches).
  bool explain = false;
  /// Launches of a call start early and wait for each other on the device (programmatic dependent
  /// launch), on sm_90 and newer.
  bool dependentLaunches = false;
  /// Verify while running that every access stays inside, that what is read is defined, that no two
  /// points define an element and that outputs are complete. On one thread, element by element,
  /// with eight bytes more for each element written; on devices: that accesses stay inside.
  bool checked = false;
  /// Verify while running that what was proved to stay inside does, in the code as it always is:
  /// what leaves its tensor is a defect of the compiler, and an error of no kind that a launch
  /// knows.
  bool evenProved = false;
  /// The last phase to run. Text of a stage that was reached is in CompiledKernel::stages.
  Phase stopAfter = Phase::Assemble;
  /// Temporaries of the kernel's top level that become outputs, so that they can be looked at.
  /// Names that are none are left to the caller.
  std::vector<std::string> keepTensors;
  /// Stages whose text is kept: `tgl`, `scheduled`, `llvm`, `asm`. PTX always is.
  std::vector<std::string> keepStages;
  /// IR texts show where each operation comes from.
  bool printLocations = false;
  /// Device code tells the line of the program of each instruction, in PTX and cubin.
  bool lineTables = false;
  /// Device code with marks in time (codegen/async/Timeline.h), which a hidden tensor takes.
  bool timeline = false;
  /// The device that the emulator is, and its multiprocessors: few, so that blocks of small
  /// problems have several tiles too.
  std::string emulatedDevice = "sm_90a";
  unsigned emulatedMultiprocessors = 3;
};

struct KernelArgument {
  enum Role { In, Inout, Out, Scalar } role = In;
  std::string name;
  DType dtype = DType::F32;    // of a scalar, what code takes it as: i32 for u8
  std::vector<IndexExpr> dims; // in size symbols
  DType declared = DType::F32; // of a scalar: its values are of this type
  /// An inout that `print`, `assert` or marks in time write: zeros at first, and no argument of the
  /// program.
  bool isObserved = false;
};

struct KernelTemporary {
  std::string name;
  DType dtype = DType::F32;
  std::vector<IndexExpr> dims;
  IndexExpr bytes;
};

/// An access that may fail while running, for reports.
struct KernelErrorSite {
  std::string text;
  std::string place; // file:line:column
  /// Where not empty: what is wrong, `text`, is so with an element of this tensor.
  std::string tensor = {};
  std::vector<IndexExpr> dims = {};
  bool isDefect = false;   ///< an access that was proved (CompileOptions::evenProved)
  bool isUnsigned = false; ///< the subscript, a number of u64
};

/// A statement `print` or `assert` of a program that is observed (InstanceOptions::observe):
/// checked::Observation in terms of the kernel's arguments.
struct KernelObservation {
  checked::Observation statement;
  std::string place; // file:line:column
  std::string text;  // `assert(x[i] > 0)`
  unsigned happened = 0;
  struct Value { // of the statement
    std::optional<unsigned> argument, isRead;
  };
  std::vector<Value> values;
};

struct PhaseTime {
  std::string phase;
  double milliseconds;
};

/// The result of a compilation. Immutable, so one may run on many threads.
class CompiledKernel {
public:
  std::string name, target;
  std::vector<KernelArgument> arguments;    // inputs and inouts, outputs, scalars, as IR has them
  std::vector<checked::Constant> constants; // compile-time constants and what they are
  std::unique_ptr<LaunchChecks> checks;     // sizes and guards; null before phase Lower
  /// Sizes that no code depends on: what `invariant` of the program names, and what that implies.
  std::vector<std::string> invariantSizes;
  KernelWork work;
  std::vector<KernelTemporary> temporaries;
  std::vector<KernelErrorSite> errorSites;
  std::vector<KernelObservation> observations; // in order of the text
  std::map<std::string, std::string> stages;
  std::vector<PhaseTime> times;

  // CPU
  std::unique_ptr<LoadedCode> code;
  KernelFunction entry = nullptr;

  // Device
  Plan plan;
  std::vector<TileLayout> layouts;
  std::vector<RowLayout> rows;
  async::Timeline timeline; // with CompileOptions::timeline
  unsigned alignment = 0;   // as in the options
  ScheduleChoice choice;    // as in the options, or as it was tuned
  std::string program;      // with listTiles: the program as TunedKey has it
  /// With listTiles: by statement that can have them, tiles in the order of the model, that which
  /// it has first.
  std::vector<std::vector<TileOption>> tiles;
  std::vector<LaunchExplanation> launches; // with CompileOptions::explain, in order
  std::string ptx;
  std::vector<char> cubin;
  std::string assemblerLog, assembler;

  // Emulator: the device's plan, and
  std::unique_ptr<EmulatedCode> emulated;

  bool isDevice() const { return target != "cpu"; }
};

/// The options do not fit the kernel: a size that it does not have, a constant that it lacks.
class WrongOptionError : public llvm::ErrorInfo<WrongOptionError> {
public:
  static char ID;
  explicit WrongOptionError(const llvm::Twine &text) : text(text.str()) {}
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  std::string text;
};

/// Compiles one kernel of a module. Mistakes of the program are in `diagnostics` and give null
/// without an error; an error is a missing tool (MissingToolError) or a defect of the compiler.
llvm::Expected<std::unique_ptr<CompiledKernel>>
compileKernel(const Module &module, const CompileOptions &options, Diagnostics &diagnostics);

} // namespace tegula

#endif // TEGULA_COMPILER_COMPILER_H

//===- Caller.h - One kernel, called with Python's objects -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A call puts arguments into the slots of parameters, reads the tensors, finds the kernel that was
// compiled for their dtypes, ranks and device and for the constants (or has it compiled, by a
// function in Python), makes the outputs and launches.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PYTHON_CALLER_H
#define TEGULA_PYTHON_CALLER_H

#include "python/module/Tensors.h"
#include <optional>
#include <unordered_map>

namespace tegula::python {

class Caller {
public:
  /// `specialise(device, given, constants)` gives the Compiled for a device number (-1: CPU), a
  /// tuple of (name, dtype, rank) for the tensors and scalars given and a dict of the constants
  /// given, as text.
  Caller(const Program &program, size_t kernel, nb::callable specialise);

  nb::object call(const nb::args &args, const nb::kwargs &kwargs);

  /// A constant that all calls have: one that does not give it takes that.
  void settle(const std::string &name);

  /// From now on kernels are observed: `tell(json, text, message)` gets what each call has seen,
  /// at most `points` of each `print`.
  void observe(nb::callable tell, unsigned points);

  /// For the garbage collector: `specialise` usually refers back to what owns the caller.
  int traverse(visitproc visit, void *arg) const;
  void clear();

private:
  struct Parameter {
    nb::str text; // interned
    std::string name;
    tegula_role role;
    bool isPacked, isRequired;
    std::string type;
  };
  /// Where an argument of a launch comes from: the slot of a parameter, or an output.
  struct Source {
    tegula_argument_info info;
    size_t index;
  };
  struct Specialised {
    nb::object compiled;
    const tegula_kernel *kernel;
    std::vector<Source> sources;
    size_t outputRanks = 0;
  };
  struct Call; // what one call has read

  void bind(const nb::args &args, const nb::kwargs &kwargs, Call &call) const;
  void readTensors(Call &call) const;
  void readOutputs(Call &call) const;
  const Specialised &find(const Call &call);
  nb::object run(const Specialised &kernel, Call &call) const;

  std::string kernelName;
  std::vector<Parameter> parameters; // but outputs
  std::vector<std::string> outputs;
  bool hasParameterOut = false;
  nb::object specialise, tell;
  unsigned printPoints = 0;
  std::unordered_map<std::string, std::shared_ptr<const Specialised>> known;
};

} // namespace tegula::python

#endif // TEGULA_PYTHON_CALLER_H

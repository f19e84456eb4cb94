//===- Reference.h - A reference compiled by libtorch ----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_BENCH_REFERENCE_REFERENCE_H
#define TEGULA_BENCH_REFERENCE_REFERENCE_H

#include "bench/reference/Tensor.h"
#include "bench/reference/TorchRef.h"
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace tegula::bench {

/// A tensor of the caller's, in host memory (device -1) or in that of a CUDA device.
struct RefTensor {
  void *data = nullptr;
  DType dtype = DType::F32;
  llvm::ArrayRef<int64_t> shape;
  int device = -1;

  RefTensor(void *data, DType dtype, llvm::ArrayRef<int64_t> shape, int device)
      : data(data), dtype(dtype), shape(shape), device(device) {}
  RefTensor(const Tensor &tensor)
      : data(const_cast<char *>(tensor.data())), dtype(tensor.dtype()), shape(tensor.shape()) {}
};

/// What a parameter of a reference may stand for. A 4-bit tensor is passed as one of 8 bits.
using RefValue = std::variant<RefTensor, int64_t, double, bool, std::vector<int64_t>>;
using RefValues = std::map<std::string, RefValue>;

/// libtegula_torch, opened once per process and never closed (libtorch cannot be unloaded).
class TorchLibrary {
public:
  /// Looks at `$TEGULA_TORCH`, then beside the program and in ../lib. Null where it is not there or
  /// does not load; `error` then says where it was looked for, or what was missing.
  static const TegulaTorchApi *get(std::string &error);
};

/// A compiled reference: a function of a text, or the forward method of a .pt file.
class Reference {
public:
  static std::unique_ptr<Reference> compile(const TegulaTorchApi &api, const std::string &source,
                                            const std::string &function, std::string &error);
  static std::unique_ptr<Reference> load(const TegulaTorchApi &api, const std::string &path,
                                         std::string &error);
  ~Reference();

  /// Names of its parameters, in order.
  const std::vector<std::string> &parameters() const { return names; }

  /// Runs it on values found by parameter name. In float64 the inputs are cast up first.
  std::optional<std::vector<Tensor>> run(const RefValues &values, bool float64,
                                         std::string &error) const;

  /// Seconds of one call on each set of values in turn.
  std::optional<std::vector<double>> time(llvm::ArrayRef<RefValues> sets, unsigned calls,
                                          std::string &error) const;

  /// Calls captured in a CUDA graph. The tensors of the values must outlive it.
  class Graph {
  public:
    ~Graph() { api.freeGraph(graph); }
    Graph(const Graph &) = delete;
    /// Seconds of all calls.
    std::optional<double> replay(std::string &error) const;

  private:
    friend class Reference;
    Graph(const TegulaTorchApi &api, TegulaTorchGraph *graph) : api(api), graph(graph) {}
    const TegulaTorchApi &api;
    TegulaTorchGraph *graph;
  };
  std::unique_ptr<Graph> capture(llvm::ArrayRef<RefValues> sets, unsigned calls,
                                 std::string &error) const;

  /// A call whose gradients autograd can take, any number of times. The tensors of the values must
  /// outlive it.
  class Tape {
  public:
    ~Tape() { api.freeTape(tape); }
    Tape(const Tape &) = delete;
    /// The gradients of the tensors that it was recorded for, in that order.
    std::optional<std::vector<Tensor>> gradients(std::string &error) const;
    /// Seconds that they take, the call itself not among them.
    std::optional<double> time(std::string &error) const;

  private:
    friend class Reference;
    Tape(const TegulaTorchApi &api, TegulaTorchTape *tape) : api(api), tape(tape) {}
    const TegulaTorchApi &api;
    TegulaTorchTape *tape;
  };
  /// `weights` are the adjoints of all results, null for those without. In float64 the inputs are
  /// cast up first, and so are the gradients.
  std::unique_ptr<Tape> record(const RefValues &values, llvm::ArrayRef<std::string> wanted,
                               llvm::ArrayRef<const Tensor *> weights, bool float64,
                               std::string &error) const;

private:
  Reference(const TegulaTorchApi &api) : api(api) {}
  bool describe(std::string &error);
  bool bind(const RefValues &values, std::vector<TegulaTorchValue> &bound,
            std::string &error) const;

  const TegulaTorchApi &api;
  TegulaTorchProgram *program = nullptr;
  std::string function;
  std::vector<std::string> names, types;
};

} // namespace tegula::bench

#endif // TEGULA_BENCH_REFERENCE_REFERENCE_H

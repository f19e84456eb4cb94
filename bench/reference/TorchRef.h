/*===- TorchRef.h - References run by libtorch, as a C interface --------*- C -*-===*\
|*
|* Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
|* See LICENSE for license information.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* What libtegula_torch.so offers. It is built against whichever libtorch is present and opened with
|* dlopen, so that `tegula` itself depends on no libtorch. Its only symbol is tegula_torch_api().
|*
|* A reference is a function of TorchScript text (`def ref(x, w): return torch.relu(x @ w)`) or the
|* forward method of a .pt file. It runs as Python's eager mode runs it: no graph optimisation, no
|* fusion, one operator after another. Gradients are autograd's own, of a call that was recorded.
|*
|* Where a function can fail it takes `char **error`; on failure it stores a message there, to be
|* freed with freeString, and returns null or -1. Calls may come from one thread at a time.
|*
\*===----------------------------------------------------------------------===*/
#ifndef TEGULA_BENCH_REFERENCE_TORCHREF_H
#define TEGULA_BENCH_REFERENCE_TORCHREF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TEGULA_TORCH_ABI 4

typedef enum TegulaTorchDType {
  TEGULA_TORCH_F64,
  TEGULA_TORCH_F32,
  TEGULA_TORCH_F16,
  TEGULA_TORCH_BF16,
  TEGULA_TORCH_F8E4M3,
  TEGULA_TORCH_F8E5M2,
  TEGULA_TORCH_I64,
  TEGULA_TORCH_I32,
  TEGULA_TORCH_I16,
  TEGULA_TORCH_I8,
  TEGULA_TORCH_U8,
  TEGULA_TORCH_BOOL,
  TEGULA_TORCH_U16,
  TEGULA_TORCH_U32,
  TEGULA_TORCH_U64
} TegulaTorchDType;

/* A tensor in memory that the caller owns. */
typedef struct TegulaTorchTensor {
  void *data;
  TegulaTorchDType dtype;
  int32_t device; /* -1: host memory; n: memory of CUDA device n */
  int32_t rank;
  const int64_t *sizes;
  const int64_t *strides; /* in elements; null: C order */
} TegulaTorchTensor;

typedef enum TegulaTorchKind {
  TEGULA_TORCH_TENSOR,
  TEGULA_TORCH_INT,
  TEGULA_TORCH_FLOAT,
  TEGULA_TORCH_BOOLEAN,
  TEGULA_TORCH_INTS, /* List[int] */
  TEGULA_TORCH_NONE
} TegulaTorchKind;

typedef struct TegulaTorchValue {
  TegulaTorchKind kind;
  TegulaTorchTensor tensor;
  int64_t integer; /* INT, BOOLEAN; the number of INTS */
  double real;
  const int64_t *integers;
} TegulaTorchValue;

typedef struct TegulaTorchProgram TegulaTorchProgram; /* compiled text, or a loaded module */
typedef struct TegulaTorchCall TegulaTorchCall;       /* the results of one call */
typedef struct TegulaTorchGraph TegulaTorchGraph;     /* calls captured in a CUDA graph */
typedef struct TegulaTorchTape TegulaTorchTape;       /* a call whose gradients can be taken */

enum {
  TEGULA_TORCH_FLOAT64 = 1 /* floating inputs are cast to float64 first */
};

typedef struct TegulaTorchApi {
  int32_t abi; /* TEGULA_TORCH_ABI of the library */

  const char *(*torchVersion)(void);
  /* CUDA devices that libtorch can use; loads its CUDA library on the first call. */
  int32_t (*cudaDevices)(void);
  int32_t (*threads)(void);
  void (*setThreads)(int32_t threads);
  void (*freeString)(char *string);

  TegulaTorchProgram *(*compile)(const char *source, char **error);
  TegulaTorchProgram *(*load)(const char *path, char **error);
  void (*freeProgram)(TegulaTorchProgram *program);

  /* Parameters of `function` (of a module: of its method, without self); -1 where there is none. */
  int32_t (*parameterCount)(TegulaTorchProgram *program, const char *function);
  /* Name and TorchScript type (`Tensor`, `int`, `List[int]`, ...); they live as long as `program`.
   */
  const char *(*parameterName)(TegulaTorchProgram *program, const char *function, int32_t index);
  const char *(*parameterType)(TegulaTorchProgram *program, const char *function, int32_t index);

  TegulaTorchCall *(*call)(TegulaTorchProgram *program, const char *function,
                           const TegulaTorchValue *arguments, int32_t count, uint32_t flags,
                           char **error);
  /* A tuple's or list's elements are outputs of their own; numbers are 0-d tensors. */
  int32_t (*outputCount)(const TegulaTorchCall *call);
  /* Dtype, rank, sizes and strides of an output; valid until freeCall. 0 on success. */
  int32_t (*output)(const TegulaTorchCall *call, int32_t index, TegulaTorchTensor *tensor);
  /* Copies an output to host memory in C order. `bytes` must be its size. 0 on success. */
  int32_t (*readOutput)(const TegulaTorchCall *call, int32_t index, void *to, size_t bytes,
                        char **error);
  void (*freeCall)(TegulaTorchCall *call);

  /* Calls `function` `calls` times and stores the seconds that each call took. Call i takes its
     arguments from argument set i % sets; set s begins at arguments[s * count]. On a CUDA device
     the time is that between two events, on the host that of the clock; results are freed outside
     it. */
  int32_t (*time)(TegulaTorchProgram *program, const char *function,
                  const TegulaTorchValue *arguments, int32_t count, int32_t sets, int32_t calls,
                  double *seconds, char **error);

  /* Captures `calls` calls, whose arguments are as in `time`, in one CUDA graph. All tensors are on
     one device. A reference that waits for the device or allocates in a way that cannot be captured
     fails. */
  TegulaTorchGraph *(*capture)(TegulaTorchProgram *program, const char *function,
                               const TegulaTorchValue *arguments, int32_t count, int32_t sets,
                               int32_t calls, char **error);
  /* Launches it once, waits, and stores the seconds that it took between two events. 0 on success.
   */
  int32_t (*replay)(TegulaTorchGraph *graph, double *seconds, char **error);
  void (*freeGraph)(TegulaTorchGraph *graph);

  /* Calls `function` once and keeps what autograd needs for the gradients of the arguments for
     which `wanted` is not 0. `weights` has one value for each output: a tensor of its shape, its
     adjoint, which is rounded to the output's type, or NONE for an output without gradient. */
  TegulaTorchTape *(*record)(TegulaTorchProgram *program, const char *function,
                             const TegulaTorchValue *arguments, int32_t count,
                             const uint8_t *wanted, const TegulaTorchValue *weights,
                             int32_t outputs, uint32_t flags, char **error);
  /* The wanted arguments' gradients, in order, each in its argument's type; zeros where no output
     depends on the argument. A tape may be played any number of times. */
  TegulaTorchCall *(*backward)(TegulaTorchTape *tape, char **error);
  /* Plays the tape once and stores the seconds, measured as in `time`. 0 on success. */
  int32_t (*timeBackward)(TegulaTorchTape *tape, double *seconds, char **error);
  void (*freeTape)(TegulaTorchTape *tape);
} TegulaTorchApi;

typedef const TegulaTorchApi *(*TegulaTorchApiFunction)(void);

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const TegulaTorchApi *tegula_torch_api(void);

#ifdef __cplusplus
}
#endif

#endif /* TEGULA_BENCH_REFERENCE_TORCHREF_H */

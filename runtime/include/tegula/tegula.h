/*===- tegula.h - The C interface of Tegula -------------------------------------===*\
|*                                                                                *|
|* Part of the Tegula project, under the Apache License v2.0 with LLVM            *|
|* Exceptions. See LICENSE for license information.                               *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                        *|
|*                                                                                *|
|*===----------------------------------------------------------------------------===*|
|*                                                                                *|
|* Compiles Tegula programs in process and runs them on buffers of the caller.    *|
|*                                                                                *|
|* - All functions may be called from any thread; one kernel may be launched from *|
|*   many threads at once.                                                        *|
|* - Functions return a tegula_status; what went wrong beyond that is a           *|
|*   tegula_message: JSON Lines, one diagnostic an object, the schema of          *|
|*   docs/diagnostics.md. Pass NULL where it is not wanted.                       *|
|* - Strings are UTF-8, sizes count elements unless a name says bytes.            *|
|* - Nothing is printed, no signal handler is installed, no global is written.    *|
|*                                                                                *|
\*===----------------------------------------------------------------------------===*/
#ifndef TEGULA_H
#define TEGULA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define TEGULA_API
#else
#define TEGULA_API __attribute__((visibility("default")))
#endif

/* The same numbers as the exit codes of the command. */
typedef enum tegula_status {
  TEGULA_OK = 0,
  TEGULA_WRONG_PROGRAM = 1, /* the program is wrong: the message says where and how to repair it */
  TEGULA_WRONG_CALL = 2,    /* an argument is wrong: shapes, dtypes, a guard of the program */
  TEGULA_MISSING = 3,       /* memory, a device, a driver or an assembler is missing */
  TEGULA_WRONG_RESULT = 4,  /* a data-dependent subscript left its tensor while running */
  TEGULA_INTERNAL = 70      /* a defect of Tegula */
} tegula_status;

typedef enum tegula_dtype {
  TEGULA_F64, TEGULA_F32, TEGULA_F16, TEGULA_BF16, TEGULA_F8E4M3, TEGULA_F8E5M2,
  TEGULA_I64, TEGULA_I32, TEGULA_I16, TEGULA_I8, TEGULA_U8, TEGULA_I4, TEGULA_U4, TEGULA_BOOL
} tegula_dtype;

typedef enum tegula_role { TEGULA_IN, TEGULA_INOUT, TEGULA_OUT, TEGULA_SCALAR } tegula_role;

typedef struct tegula_kernel tegula_kernel;
typedef struct tegula_message tegula_message;

/* `0.1.0`, and what the compiler was built with: `LLVM 22.1.8`. */
TEGULA_API const char *tegula_version(void);
TEGULA_API const char *tegula_llvm_version(void);

TEGULA_API const char *tegula_message_json(const tegula_message *message); /* "" for NULL */
TEGULA_API void tegula_message_free(tegula_message *message);              /* NULL is fine */

/* A name with a value as text: `{"eps", "1e-3"}`, `{"stride", "(2, 1)"}`, `{"M", "64"}`. */
typedef struct tegula_setting {
  const char *name;
  const char *value;
} tegula_setting;

/* What a kernel is compiled for. Zero-initialise it, then set what is needed. */
typedef struct tegula_options {
  size_t struct_bytes;        /* sizeof(tegula_options): lets the structure grow */
  const char *kernel;         /* NULL: the file's last kernel */
  const char *target;         /* "cpu" (NULL), "cuda" (the present device), "sm_90a", ... */
  const char *file_name;      /* for messages; NULL: "<input>" */
  const tegula_setting *constants; /* compile-time constants */
  size_t num_constants;
  const tegula_setting *sizes;     /* sizes to specialise for */
  size_t num_sizes;
  const tegula_setting *types;     /* generic types: {"T", "f16"} */
  size_t num_types;
  int ellipsis_rank;               /* rank of `...`; read where the kernel has one */
  const char *const *optionals;    /* names of the optional tensors that will be passed */
  size_t num_optionals;
  int checked;                     /* verify every access while running (CPU) */
} tegula_options;

/* Compiles `text` (`bytes` long). On TEGULA_OK `*kernel` is set, to be freed by tegula_free; warnings
 * (launch guards among them) may still be in `*message`. */
TEGULA_API tegula_status tegula_compile(const char *text, size_t bytes,
                                        const tegula_options *options, tegula_kernel **kernel,
                                        tegula_message **message);
TEGULA_API void tegula_free(tegula_kernel *kernel); /* NULL is fine */

/* The arguments of a launch, in order: inputs and inouts as declared, scalars, outputs. */
typedef struct tegula_argument_info {
  const char *name;
  tegula_role role;
  tegula_dtype dtype;
  size_t rank;
} tegula_argument_info;
TEGULA_API size_t tegula_num_arguments(const tegula_kernel *kernel);
TEGULA_API tegula_argument_info tegula_argument(const tegula_kernel *kernel, size_t index);
/* The dim's size expression as text: `3*C`, `(H + 2*pad - KH)//2 + 1`. */
TEGULA_API const char *tegula_argument_dim(const tegula_kernel *kernel, size_t index, size_t dim);

/* Everything known about the kernel as one JSON object: arguments, sizes, guards, temporaries,
 * launches, bytes and operations, phase times. Owned by the kernel. */
TEGULA_API const char *tegula_describe(const tegula_kernel *kernel);
/* A stage of the compilation as text ("tgl", "scheduled", "llvm", "ptx", "asm"); NULL where there
 * is none. Owned by the kernel. */
TEGULA_API const char *tegula_stage(tegula_kernel *kernel, const char *stage);

/* A tensor in memory of the target: row-major and contiguous where `strides` is NULL. Strides count
 * elements. */
typedef struct tegula_tensor {
  void *data;
  tegula_dtype dtype;
  size_t rank;
  const int64_t *shape;
  const int64_t *strides;
} tegula_tensor;

typedef struct tegula_value {
  const tegula_tensor *tensor; /* tensors */
  double number;               /* scalars of a float type */
  int64_t integer;             /* scalars of an integer or bool type */
} tegula_value;

/* Shapes of the outputs for these inputs: `shapes[k]` receives rank-of-output-k values. Evaluates
 * sizes and guards; does not run. */
TEGULA_API tegula_status tegula_infer(const tegula_kernel *kernel, const tegula_value *arguments,
                                      size_t num_arguments, int64_t *const *shapes,
                                      tegula_message **message);

/* Checks shapes, dtypes, aliasing and guards, then runs. CPU: returns when done. CUDA: queued on
 * `stream` (a CUstream; NULL: the default one), errors of running come from tegula_synchronize. */
TEGULA_API tegula_status tegula_launch(tegula_kernel *kernel, const tegula_value *arguments,
                                       size_t num_arguments, void *stream,
                                       tegula_message **message);
TEGULA_API tegula_status tegula_synchronize(tegula_kernel *kernel, void *stream,
                                            tegula_message **message);

/* Diagnostics of a program without compiling it, as `tegula check` gives them. */
TEGULA_API tegula_status tegula_check(const char *text, size_t bytes, const char *file_name,
                                      tegula_message **message);

#ifdef __cplusplus
}
#endif

#endif /* TEGULA_H */

/*===- tegula.h - The C interface of Tegula -------------------------------------===*\
|*                                                                                *|
|* Part of the Tegula project, under the Apache License v2.0 with LLVM            *|
|* Exceptions. See LICENSE for license information.                               *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                        *|
|*                                                                                *|
|*===----------------------------------------------------------------------------===*|
|*                                                                                *|
|* Compiles Tegula programs in process and runs them on buffers of the caller:    *|
|*                                                                                *|
|*   context   threads and a device, made once                                    *|
|*   program   a parsed file: its kernels and what they are called with           *|
|*   kernel    one kernel compiled for one target, types and constants            *|
|*   launch    one run of a kernel on given buffers                               *|
|*   prepared  what many launches with the same shapes have in common             *|
|*                                                                                *|
|* Errors. Functions that can fail return a tegula_status. What went wrong beyond *|
|* that is a tegula_message: JSON Lines, one diagnostic a line, in the schema of  *|
|* docs/diagnostics.md. Every `message` parameter may be NULL; otherwise it       *|
|* receives NULL, or a message that the caller frees with tegula_message_free.    *|
|* A null handle, an index out of range or a NULL where it is not allowed is      *|
|* TEGULA_WRONG_CALL (functions that return a value then give NULL or zeros).     *|
|* Not reported: where memory runs out while compiling, the process ends.         *|
|*                                                                                *|
|* Threads. Every function may be called from any thread. Contexts, programs and  *|
|* kernels never change once made, as far as a caller can see, and may be used by *|
|* many threads at once; only freeing a handle must not overlap another use of    *|
|* that very handle. Launches of one kernel may overlap where their written       *|
|* buffers do not.                                                                *|
|*                                                                                *|
|* Ownership. Freeing with NULL does nothing. A program outlives its context and  *|
|* a kernel outlives both where they are freed first. Strings that functions      *|
|* return belong to the handle that was asked and live as long as it does; what   *|
|* the caller passes is needed during the call only.                              *|
|*                                                                                *|
|* Units. Strings are UTF-8. Shapes and strides count elements; names that say    *|
|* `bytes` count bytes.                                                           *|
|*                                                                                *|
|* Nothing is printed, no signal handler is installed and the process's locale,   *|
|* environment and current CUDA context are left as they were. Structures that    *|
|* begin with `struct_bytes` may grow: set it to sizeof the structure and all     *|
|* that you do not need to zero. Machine code for devices is kept in a folder for *|
|* later processes; an empty TEGULA_CACHE_DIR forbids it (docs/c-api.md).         *|
|*                                                                                *|
\*===----------------------------------------------------------------------------===*/
#ifndef TEGULA_H
#define TEGULA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TEGULA_API __attribute__((visibility("default")))

/* The same numbers as the exit codes of the command. */
typedef enum tegula_status {
  TEGULA_OK = 0,
  TEGULA_WRONG_PROGRAM = 1, /* the program is wrong: the message says where, and how to repair it */
  TEGULA_WRONG_CALL = 2, /* an argument is wrong: a name, shape, dtype, or a guard of the program */
  TEGULA_MISSING = 3,    /* memory, a device, a driver or an assembler is missing */
  TEGULA_WRONG_RESULT = 4, /* a data-dependent subscript left its tensor while running; results
                              hold 0 there, or were not written. Of an observed kernel also: an
                              assertion fails, or a value is what is looked for */
  TEGULA_STOPPED = 5,  /* the caller stopped the launch (tegula_launch_options.stop); results are
                          not complete */
  TEGULA_INTERNAL = 70 /* a defect of Tegula */
} tegula_status;

/* Element types. f8e4m3 is the format without infinities; booleans are bytes of 0 or 1; two 4-bit
 * integers share a byte, low nibble first, and each row (last dim) is padded to whole bytes. */
typedef enum tegula_dtype {
  TEGULA_F64,
  TEGULA_F32,
  TEGULA_F16,
  TEGULA_BF16,
  TEGULA_F8E4M3,
  TEGULA_F8E5M2,
  TEGULA_I64,
  TEGULA_I32,
  TEGULA_I16,
  TEGULA_I8,
  TEGULA_U8,
  TEGULA_I4,
  TEGULA_U4,
  TEGULA_BOOL,
  TEGULA_U16,
  TEGULA_U32,
  TEGULA_U64,
  TEGULA_NO_DTYPE =
      0x7fffffff /* any number may be passed, and is refused where it is none of these */
} tegula_dtype;

/* What a parameter or an argument is for. */
typedef enum tegula_role {
  TEGULA_IN,      /* a tensor that is read */
  TEGULA_INOUT,   /* a tensor that is updated in place */
  TEGULA_OUT,     /* a tensor that is written, every element */
  TEGULA_SCALAR,  /* one number, given at each launch */
  TEGULA_CONSTANT /* a number or tuple, given when compiling; no argument of a launch */
} tegula_role;

typedef struct tegula_message tegula_message;
typedef struct tegula_context tegula_context;
typedef struct tegula_program tegula_program;
typedef struct tegula_kernel tegula_kernel;

/* The version, such as `1.2.3`, and what the compiler was built with: `22.1.8`. Static strings. */
TEGULA_API const char *tegula_version(void);
TEGULA_API const char *tegula_llvm_version(void);
/* The name in the language, `bf16`, a static string; NULL for no dtype. */
TEGULA_API const char *tegula_dtype_name(tegula_dtype dtype);
/* Bits of an element in memory; 0 for no dtype. */
TEGULA_API unsigned tegula_dtype_bits(tegula_dtype dtype);

/* JSON Lines; "" for NULL. */
TEGULA_API const char *tegula_message_json(const tegula_message *message);
/* The same for people, as `tegula check` prints it, without colours; "" for NULL. */
TEGULA_API const char *tegula_message_text(const tegula_message *message);
TEGULA_API void tegula_message_free(tegula_message *message);

/*===----------------------------------------------------------------------------===*\
|* Context                                                                        *|
\*===----------------------------------------------------------------------------===*/

typedef struct tegula_context_options {
  size_t struct_bytes;
  /* Threads that a launch on the CPU may use, the caller's among them. 0: $TEGULA_NUM_THREADS, else
   * as many as the process may run on. They start with the first launch that is worth it. Of
   * launches that overlap one has them, the others run on their callers' threads. */
  unsigned num_threads;
  /* The CUDA device of target "cuda", as the driver numbers them. It is opened when first needed.
   */
  int device;
} tegula_context_options;

/* `options` may be NULL: all defaults. Costs microseconds. Fails with TEGULA_WRONG_CALL alone. */
TEGULA_API tegula_status tegula_context_create(const tegula_context_options *options,
                                               tegula_context **context, tegula_message **message);
TEGULA_API void tegula_context_free(tegula_context *context);

/*===----------------------------------------------------------------------------===*\
|* Program                                                                        *|
\*===----------------------------------------------------------------------------===*/

/* Parses `text`, `bytes` long (at most 1 MiB, no NUL needed). `file_name` is for messages; NULL:
 * "<input>". On TEGULA_OK `*program` is set, to be freed by tegula_program_free.
 * TEGULA_WRONG_PROGRAM: syntax errors, and what else is wrong in what could be understood. Of a
 * text without them tegula_check and tegula_compile find the rest. */
TEGULA_API tegula_status tegula_parse(const char *text, size_t bytes, const char *file_name,
                                      tegula_program **program, tegula_message **message);
TEGULA_API void tegula_program_free(tegula_program *program);

/* The diagnostics of `tegula check` for one kernel, or all of them (NULL): TEGULA_OK, perhaps with
 * warnings, or TEGULA_WRONG_PROGRAM. What a launch would check of the sizes comes as warnings and
 * remarks. */
TEGULA_API tegula_status tegula_check(const tegula_program *program, const char *kernel,
                                      tegula_message **message);

/* Kernels in the order of the text. */
TEGULA_API size_t tegula_num_kernels(const tegula_program *program);
TEGULA_API const char *tegula_kernel_name(const tegula_program *program, size_t kernel);

/* A parameter as declared: inputs, scalars and constants in order, then outputs. */
typedef struct tegula_parameter_info {
  const char *name;
  tegula_role role;
  const char *type;          /* as written: "f32", "T" (generic), "int", "float", "bool" */
  size_t rank;               /* dims as written, "..." being one; of a tuple constant 1 */
  const char *default_value; /* as written, NULL: none. A tensor with one may be left out */
} tegula_parameter_info;
TEGULA_API size_t tegula_num_parameters(const tegula_program *program, size_t kernel);
TEGULA_API tegula_parameter_info tegula_parameter(const tegula_program *program, size_t kernel,
                                                  size_t parameter);
/* A dim as written: "M", "3*C", "...". */
TEGULA_API const char *tegula_parameter_dim(const tegula_program *program, size_t kernel,
                                            size_t parameter, size_t dim);

/* The program's text, as it was given or, of a gradient, in the canonical form, ending in NUL. */
TEGULA_API const char *tegula_program_text(const tegula_program *program);

/* A name with a value as text: a constant {"eps", "1e-3"}, {"stride", "(2, 1)"}, {"causal",
 * "true"}, a generic type {"T", "f16"}, or a size to specialise for {"N", "1024"}. */
typedef struct tegula_setting {
  const char *name;
  const char *value;
} tegula_setting;

/* Whether outputs of the kernel that the gradient needs are its parameters, or computed again. */
typedef enum tegula_saved_outputs {
  TEGULA_SAVED_BY_COST, /* parameters where an element is a reduction */
  TEGULA_SAVED_ALL,
  TEGULA_SAVED_NONE
} tegula_saved_outputs;

typedef struct tegula_gradient_options {
  size_t struct_bytes;
  const char *kernel; /* NULL: the program's last one */
  /* Tensors to differentiate with respect to; none: all of floats. */
  const char *const *wrt;
  size_t num_wrt;
  /* Constants and generic types. A constant that is not among them has its default. */
  const tegula_setting *settings;
  size_t num_settings;
  /* Names of the optional tensors and scalars that calls leave out; of the gradient all others are
   * parameters. */
  const char *const *left_out;
  size_t num_left_out;
  /* Dims that `...` stands for where `has_ellipsis_rank` is set; else any number, where the
   * gradient allows it. */
  int has_ellipsis_rank;
  unsigned ellipsis_rank;
  tegula_saved_outputs saved;
} tegula_gradient_options;

/* Writes the program of a kernel's gradients, as `tegula grad` does (docs/grad.md): its kernel
 * NAME_grad takes, by name, what it needs of the kernel's parameters and outputs and `grad_Y` for
 * an output Y, and gives `grad_X` for tensors X. `options` may be NULL. On TEGULA_OK `*gradient` is
 * set, to be freed by tegula_program_free. TEGULA_WRONG_PROGRAM: diagnostics, E0913 where something
 * has no rule. TEGULA_WRONG_CALL: an unknown kernel or setting. */
TEGULA_API tegula_status tegula_gradient(const tegula_program *program,
                                         const tegula_gradient_options *options,
                                         tegula_program **gradient, tegula_message **message);

/*===----------------------------------------------------------------------------===*\
|* Kernel                                                                         *|
\*===----------------------------------------------------------------------------===*/

/* What a launch looks at (docs/checked.md). */
typedef enum tegula_observe {
  TEGULA_OBSERVE_NOTHING,    /* `print` and `assert` of the program leave no trace */
  TEGULA_OBSERVE_STATEMENTS, /* what they say */
  TEGULA_OBSERVE_NAN,        /* and the first NaN that an equation makes */
  TEGULA_OBSERVE_FINITE      /* and the first NaN or infinity */
} tegula_observe;

typedef struct tegula_compile_options {
  size_t struct_bytes;
  const char *kernel; /* NULL: the program's last one */
  /* "cpu" (NULL): this machine's processor. "cuda": the context's device, ready to launch. "sm_80",
   * "sm_90a", ...: PTX for that target, on any machine; such a kernel cannot be launched. */
  const char *target;
  const tegula_setting *settings;
  size_t num_settings;
  unsigned ellipsis_rank; /* dims that `...` stands for, where the kernel has it */
  const char *const
      *optionals; /* names of the optional tensors and scalars that launches will pass */
  size_t num_optionals;
  int checked; /* verify every access while running (CPU) */
  /* Stages whose text tegula_stage shall give: "tgl", "scheduled", "llvm", "asm" (CPU). "ptx" of a
   * device's kernel is always kept. */
  const char *const *stages;
  size_t num_stages;
  /* Target "cuda": launches run the kernel's code for all sizes. Otherwise the first launch with
   * new sizes (or tegula_infer, or tegula_prepare) compiles code for these alone, for up to 16 sets
   * of sizes, which takes some tens of milliseconds and is not possible while a stream is captured.
   */
  int any_sizes;
  /* Target "cuda", capability 9.0 and newer: a launch may start while the one before it in the same
   * call still runs, and waits for it on the device (programmatic dependent launch). */
  int dependent_launches;
  /* Target "cuda": with the schedules that `tegula tune` has kept for these sizes on this device.
   */
  int tuned;
  /* Of products, for a kernel without a statement `precision`: "f32" (or NULL), "tf32", "conv_tf32"
   * (tf32 in convolutions alone) or "bf16". */
  const char *precision;
  /* Target "cpu": launches tell what was seen (tegula_launch_options.observed), and end with
   * TEGULA_WRONG_RESULT where an assertion fails or a value is what is looked for. */
  tegula_observe observe;
} tegula_compile_options;

/* Compiles one kernel; `options` may be NULL. On TEGULA_OK `*kernel` is set, to be freed by
 * tegula_free, and `*message` may hold warnings and remarks. TEGULA_WRONG_PROGRAM: diagnostics.
 * TEGULA_WRONG_CALL: an unknown kernel, target or setting. TEGULA_MISSING, target "cuda": no
 * driver, device or assembler (ptxas, libnvJitLink). Takes some 10 to 150 ms and the stack of a
 * thread of 8 MiB. */
TEGULA_API tegula_status tegula_compile(const tegula_context *context,
                                        const tegula_program *program,
                                        const tegula_compile_options *options,
                                        tegula_kernel **kernel, tegula_message **message);
/* On a device, launches must have finished. */
TEGULA_API void tegula_free(tegula_kernel *kernel);

/* The arguments of a launch, in order: inputs and inouts as declared, outputs, scalars. Optional
 * ones that were not named when compiling are not among them. */
typedef struct tegula_argument_info {
  const char *name;
  tegula_role role;
  tegula_dtype dtype;
  size_t rank; /* 0: a scalar, or a tensor of one element */
} tegula_argument_info;
TEGULA_API size_t tegula_num_arguments(const tegula_kernel *kernel);
TEGULA_API tegula_argument_info tegula_argument(const tegula_kernel *kernel, size_t argument);
/* The dim's size as an expression of sizes: "M", "3*C", "(H + 2 - KH)//2 + 1". */
TEGULA_API const char *tegula_argument_dim(const tegula_kernel *kernel, size_t argument,
                                           size_t dim);

/* What the sizes of every launch must satisfy, decided by tegula_infer and tegula_launch. */
typedef struct tegula_guard_info {
  const char *condition; /* "nonneg N - 3": spelled as in IR (symbolic/Guards.h) */
  const char *message;   /* what is wrong where it does not hold */
} tegula_guard_info;
TEGULA_API size_t tegula_num_guards(const tegula_kernel *kernel);
TEGULA_API tegula_guard_info tegula_guard(const tegula_kernel *kernel, size_t guard);

/* Everything known about the kernel as one JSON object, schema `tegula.kernel` (docs/c-api.md):
 * target, arguments, sizes, constants, guards, temporaries, phase times. */
TEGULA_API const char *tegula_describe(const tegula_kernel *kernel);
/* The text of a stage of the compilation; NULL where it was not kept or there is none. */
TEGULA_API const char *tegula_stage(const tegula_kernel *kernel, const char *stage);

/*===----------------------------------------------------------------------------===*\
|* Launch                                                                         *|
\*===----------------------------------------------------------------------------===*/

/* One argument of a launch. */
typedef struct tegula_value {
  /* Tensors: the first element, aligned to its own size, in memory of the target; may be NULL where
   * the tensor has no elements. tegula_infer does not look at it. */
  void *data;
  /* Tensors: `rank` sizes. Outputs may leave it NULL: the buffer then is as large as the sizes of
   * the inputs demand. */
  const int64_t *shape;
  /* NULL, or `rank` strides, which must be those of a row-major contiguous tensor (those of dims of
   * size 1 are not looked at). */
  const int64_t *strides;
  size_t rank;
  tegula_dtype dtype; /* tensors: must be the argument's */
  double number;      /* scalars of a float type: rounded to it, refused where it is too large */
  int64_t integer; /* scalars of any other type: refused outside of its range; of u64, its bits */
} tegula_value;

/* What follows from the shapes of inputs and inouts, all guards being checked; runs nothing.
 * `arguments`: one for each argument, in order; of outputs nothing is read. `output_shapes`, where
 * it is not NULL, receives the shapes of the outputs one after another: as many values as their
 * ranks add up to. `*workspace_bytes`, where it is not NULL, receives what a launch needs beside
 * its arguments. TEGULA_WRONG_CALL: a shape, dtype or guard is violated; the message names it. */
TEGULA_API tegula_status tegula_infer(const tegula_kernel *kernel, const tegula_value *arguments,
                                      size_t num_arguments, int64_t *output_shapes,
                                      size_t *workspace_bytes, tegula_message **message);

/* What an observed launch has seen. */
typedef struct tegula_observed tegula_observed;
/* One JSON object, schema `tegula.observed` (docs/checked.md). */
TEGULA_API const char *tegula_observed_json(const tegula_observed *observed);
/* The lines of `print`, as `tegula run --checked` shows them. */
TEGULA_API const char *tegula_observed_text(const tegula_observed *observed);
TEGULA_API void tegula_observed_free(tegula_observed *observed);

typedef struct tegula_launch_options {
  size_t struct_bytes;
  /* CUDA: the CUstream (cudaStream_t) to queue on; NULL: the legacy default stream. */
  void *stream;
  /* Memory of the target for temporaries, `workspace_bytes` long, 256-byte aligned, that nothing
   * else uses until the launch has finished. NULL, or less than tegula_infer asks for: the launch
   * allocates what it needs. */
  void *workspace;
  size_t workspace_bytes;
  /* CPU: NULL, or a number that another thread, or a signal's handler, sets to something other than
   * 0 to end the launch: with TEGULA_STOPPED, once every thread has done the points that it is at.
   * It is looked at between parts of a statement that are estimated at some 10 ms; a single point
   * is done as a whole. */
  const int *stop;
  /* A kernel that is compiled with `observe`: NULL, or receives what the launch has seen, to be
   * freed by tegula_observed_free; NULL where nothing has run. */
  tegula_observed **observed;
  unsigned print_points; /* that each `print` shows at most; 0: 20 */
} tegula_launch_options;

/* Runs the kernel. Shapes, dtypes, alignment, overlap of what is written with anything else, and
 * the guards are checked first. `options` may be NULL.
 *
 * CPU: returns when done. TEGULA_WRONG_RESULT: a data-dependent subscript was outside.
 * CUDA: returns when queued on the stream; errors of running come from tegula_synchronize.
 *
 * Cost of a call on the CPU, beside the kernel's own work or the driver's: under 0.4 us for sizes
 * that were used before (the last 16 sets are remembered), a microsecond or more for new ones
 * (docs/c-api.md); on a device new ones compile (tegula_compile_options.any_sizes). Nothing is
 * allocated for remembered sizes, but for a kernel with temporaries that was given no workspace. */
TEGULA_API tegula_status tegula_launch(const tegula_kernel *kernel, const tegula_value *arguments,
                                       size_t num_arguments, const tegula_launch_options *options,
                                       tegula_message **message);

/* CUDA: waits for all work of `stream`, then reports what this kernel's data-dependent subscripts
 * did since the last call: TEGULA_OK or TEGULA_WRONG_RESULT. CPU: TEGULA_OK. */
TEGULA_API tegula_status tegula_synchronize(const tegula_kernel *kernel, void *stream,
                                            tegula_message **message);

/*===----------------------------------------------------------------------------===*\
|* Prepared calls                                                                 *|
\*===----------------------------------------------------------------------------===*/

typedef struct tegula_prepared tegula_prepared;

/* Decides once what launches with these shapes have in common: sizes, guards, dtypes, strides, on a
 * device the grids and the arguments of every launch. `arguments` as for tegula_infer; of outputs
 * shapes and dtypes are checked where a shape is given. On TEGULA_OK `*prepared` is set, to be
 * freed by tegula_prepared_free, before its kernel. It may be launched from many threads at once.
 * Observed kernels have none: TEGULA_WRONG_CALL. */
TEGULA_API tegula_status tegula_prepare(const tegula_kernel *kernel, const tegula_value *arguments,
                                        size_t num_arguments, tegula_prepared **prepared,
                                        tegula_message **message);
TEGULA_API void tegula_prepared_free(tegula_prepared *prepared);
/* What a launch needs beside its arguments, as tegula_infer tells. */
TEGULA_API size_t tegula_prepared_workspace_bytes(const tegula_prepared *prepared);

/* Runs the kernel as tegula_launch does, for shapes that were decided before. `data`: for each
 * argument in order the address of a tensor's first element, in memory of the target, or of a
 * scalar in the dtype that tegula_argument tells, in the host's. Memory, alignment and overlap are
 * checked. CUDA: where no workspace is given, one for each stream (the first 8) is allocated by its
 * first launch and kept until the call is freed, when launches must have finished; under stream
 * capture each launch allocates its own. */
TEGULA_API tegula_status tegula_launch_prepared(const tegula_prepared *prepared, void *const *data,
                                                size_t num_arguments,
                                                const tegula_launch_options *options,
                                                tegula_message **message);

#ifdef __cplusplus
}
#endif

#endif /* TEGULA_H */

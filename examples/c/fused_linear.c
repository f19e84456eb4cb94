/*===- fused_linear.c - A fused kernel from C: compile, query, run, check -------===*\
|*                                                                                *|
|* Part of the Tegula project, under the Apache License v2.0 with LLVM            *|
|* Exceptions. See LICENSE for license information.                               *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                        *|
|*                                                                                *|
|*===----------------------------------------------------------------------------===*|
|*                                                                                *|
|* Needs a C11 compiler, tegula.h and libtegula alone. Prints what it does, ends  *|
|* with 0 when all is right and 1 otherwise.                                      *|
|*                                                                                *|
\*===----------------------------------------------------------------------------===*/
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tegula/tegula.h>

/* y = relu(x W^T + b), and the sum of each row of y, in one kernel. */
static const char source[] =
    "kernel fused_linear(x: f32[M, K], w: f32[N, K], b: f32[N], slope: float = 0.0)\n"
    "    -> (y: f32[M, N], total: f32[M]) {\n"
    "  y[i, j] = leaky_relu(sum(x[i, k] * w[j, k] for k) + b[j], negative_slope=slope)\n"
    "  total[i] = sum(y[i, j] for j)\n"
    "}\n";

/* The same mistake that everyone makes: PyTorch's way to write a row's softmax. */
static const char wrong_source[] = "kernel wrong(x: f32[M, N]) -> (y: f32[M, N]) {\n"
                                   "  y[i, j] = softmax(x[i, j], dim=1)\n"
                                   "}\n";

enum { M = 37, N = 50, K = 64 };

/* Ends the program unless all went well. */
static void must(tegula_status status, tegula_message *message, const char *what) {
  if (status != TEGULA_OK) {
    fprintf(stderr, "%s failed with status %d:\n%s", what, (int)status, tegula_message_json(message));
    exit(1);
  }
  tegula_message_free(message); /* warnings */
}

static void check(int holds, const char *what) {
  if (!holds) {
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
  }
}

static tegula_value tensor(void *data, const int64_t *shape, size_t rank) {
  tegula_value value;
  memset(&value, 0, sizeof value);
  value.data = data;
  value.shape = shape;
  value.rank = rank;
  value.dtype = TEGULA_F32;
  return value;
}

static void show_signature(const tegula_kernel *kernel) {
  static const char *const roles[] = {"in", "inout", "out", "scalar", "constant"};
  size_t i, d;
  for (i = 0; i < tegula_num_arguments(kernel); ++i) {
    tegula_argument_info info = tegula_argument(kernel, i);
    printf("  %-6s %s: %s[", roles[info.role], info.name, tegula_dtype_name(info.dtype));
    for (d = 0; d < info.rank; ++d)
      printf("%s%s", d ? ", " : "", tegula_argument_dim(kernel, i, d));
    printf("]\n");
  }
}

/* A wrong program is a message, not a crash: JSON Lines that name place, reason and repair. */
static void show_errors(void) {
  tegula_program *program = NULL;
  tegula_message *message = NULL;
  tegula_status status =
      tegula_parse(wrong_source, strlen(wrong_source), "wrong.tgl", &program, NULL);
  check(status == TEGULA_OK, "wrong.tgl has no syntax error");
  status = tegula_check(program, NULL, &message);
  check(status == TEGULA_WRONG_PROGRAM, "wrong.tgl is rejected");
  printf("a wrong program:\n%s", tegula_message_json(message));
  check(strstr(tegula_message_json(message), "\"code\":\"E") != NULL, "the message has a code");
  tegula_message_free(message);
  tegula_program_free(program);
}

int main(void) {
  static float x[M * K], w[N * K], b[N], y[M * N], total[M];
  static const int64_t x_shape[] = {M, K}, w_shape[] = {N, K}, b_shape[] = {N};
  static const int64_t bad_shape[] = {N, K + 1};
  static const tegula_setting settings[] = {{"slope", "0.25"}};
  tegula_context *context = NULL;
  tegula_program *program = NULL;
  tegula_kernel *kernel = NULL;
  tegula_message *message = NULL;
  tegula_compile_options options;
  tegula_launch_options launch;
  tegula_value arguments[5];
  int64_t shapes[3];
  size_t workspace_bytes = 0;
  double worst = 0;
  int i, j, k;

  printf("tegula %s, LLVM %s\n", tegula_version(), tegula_llvm_version());
  show_errors();

  /* Compile. */
  must(tegula_context_create(NULL, &context, &message), message, "creating a context");
  must(tegula_parse(source, strlen(source), "fused_linear.tgl", &program, &message), message, "parsing");
  memset(&options, 0, sizeof options);
  options.struct_bytes = sizeof options;
  options.settings = settings;
  options.num_settings = 1;
  must(tegula_compile(context, program, &options, &kernel, &message), message, "compiling");

  /* Query. */
  printf("arguments of %s:\n", tegula_kernel_name(program, 0));
  show_signature(kernel);
  for (i = 0; i < (int)tegula_num_guards(kernel); ++i)
    printf("  a launch needs: %s\n", tegula_guard(kernel, i).condition);

  /* Run. */
  for (i = 0; i < M * K; ++i)
    x[i] = (float)(i * 7 % 23 - 11) / 8;
  for (i = 0; i < N * K; ++i)
    w[i] = (float)(i * 5 % 19 - 9) / 16;
  for (i = 0; i < N; ++i)
    b[i] = (float)(i % 5) - 2;
  arguments[0] = tensor(x, x_shape, 2);
  arguments[1] = tensor(w, w_shape, 2);
  arguments[2] = tensor(b, b_shape, 1);
  arguments[3] = tensor(y, NULL, 2); /* outputs: as large as the inputs demand */
  arguments[4] = tensor(total, NULL, 1);
  must(tegula_infer(kernel, arguments, 5, shapes, &workspace_bytes, &message), message, "inferring");
  printf("y is [%" PRId64 ", %" PRId64 "], total is [%" PRId64 "], a workspace takes %zu bytes\n", shapes[0],
         shapes[1], shapes[2], workspace_bytes);
  check(shapes[0] == M && shapes[1] == N && shapes[2] == M, "the inferred shapes");
  memset(&launch, 0, sizeof launch);
  launch.struct_bytes = sizeof launch;
  launch.workspace_bytes = (workspace_bytes + 255) / 256 * 256;
  launch.workspace = launch.workspace_bytes ? aligned_alloc(256, launch.workspace_bytes) : NULL;
  must(tegula_launch(kernel, arguments, 5, &launch, &message), message, "launching");

  /* Check. */
  for (i = 0; i < M; ++i) {
    double sum = 0;
    for (j = 0; j < N; ++j) {
      double value = b[j];
      for (k = 0; k < K; ++k)
        value += (double)x[i * K + k] * w[j * K + k];
      value = value < 0 ? value * 0.25 : value;
      sum += value;
      worst = fmax(worst, fabs(value - y[i * N + j]));
    }
    worst = fmax(worst, fabs(sum - total[i]));
  }
  printf("largest error %.2g\n", worst);
  check(worst < 1e-3, "the results");

  /* What does not fit is refused before anything runs. */
  arguments[1].shape = bad_shape;
  check(tegula_launch(kernel, arguments, 5, NULL, &message) == TEGULA_WRONG_CALL, "a wrong shape is refused");
  printf("a wrong shape:\n%s", tegula_message_json(message));
  tegula_message_free(message);

  free(launch.workspace);
  tegula_free(kernel);
  tegula_program_free(program);
  tegula_context_free(context);
  return 0;
}

/*===- launch_overhead.c - What a launch on a device costs the CPU --------------===*\
|*                                                                                *|
|* Part of the Tegula project, under the Apache License v2.0 with LLVM            *|
|* Exceptions. See LICENSE for license information.                               *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                        *|
|*                                                                                *|
|*===----------------------------------------------------------------------------===*|
|*                                                                                *|
|* Queues kernels that have next to nothing to do: nanoseconds of a call by       *|
|* tegula_launch and by tegula_launch_prepared beside those of cuLaunchKernel     *|
|* with as many launches, the median of rounds taken in turns. Rounds are short   *|
|* enough for the queue never to be full, and are waited for between the clocks.  *|
|*                                                                                *|
|* Without a device, with the driver of the tests, the driver's part is near zero: *|
|*   LD_LIBRARY_PATH=build/dev/fakecuda FAKE_CUDA_QUIET=1                          *|
|*     TEGULA_PTXAS=test/fakecuda/ptxas.sh build/dev/bin/launch_overhead           *|
|*                                                                                *|
\*===----------------------------------------------------------------------------===*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tegula/tegula.h>
#include <time.h>

static const char source[] =
    "kernel add(x: f32[N], z: f32[N]) -> (y: f32[N]) { y[i] = x[i] + z[i] }\n"
    "kernel many(a: f32[B, H, W, C], b: f32[C], c: f32[C], d: f32[C], e: f32[C], eps: f32)\n"
    "    -> (y: f32[B, H, W, C]) {\n"
    "  y[n, h, w, k] = (a[n, h, w, k] - b[k]) * rsqrt(c[k] + eps) * d[k] + e[k]\n"
    "}\n"
    "kernel center(x: f32[N]) -> (y: f32[N]) {\n"
    "  m = sum(x[i] for i)\n"
    "  y[i] = x[i] - m\n"
    "}\n";

/* What cuLaunchKernel alone is measured with. */
static const char ptx[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry empty(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d,\n"
                          "  .param .u64 e, .param .u64 f, .param .u64 g, .param .u64 h) { ret; }\n";

enum { ROUNDS = 101, CALLS = 200, MOST = 8 };

static int (*launchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                           void *, void **, void **);
static void *function;

static void fail(const char *what) {
  fprintf(stderr, "launch_overhead: %s\n", what);
  exit(3);
}

static void *symbol(void *driver, const char *name) {
  void *found = dlsym(driver, name);
  if (!found)
    fail(name);
  return found;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int ascending(const void *lhs, const void *rhs) {
  double a = *(const double *)lhs, b = *(const double *)rhs;
  return (a > b) - (a < b);
}

static double median(double *rounds) {
  qsort(rounds, ROUNDS, sizeof rounds[0], ascending);
  return rounds[ROUNDS / 2];
}

/* `arguments` have shapes; `launches` is what the kernel's plan comes to for them. */
static void measure(const tegula_context *context, const tegula_program *program, const char *name,
                    tegula_value *arguments, size_t count, int launches) {
  static double plain[ROUNDS], guarded[ROUNDS], prepared[ROUNDS];
  tegula_compile_options options;
  tegula_launch_options where;
  tegula_message *message = NULL;
  tegula_kernel *kernel = NULL;
  tegula_prepared *call = NULL;
  void *data[MOST], *parameters[MOST];
  uint64_t zero = 0;
  float eps = 1e-5f;
  size_t i;
  int round, n, k;
  double base, one, two;

  memset(&options, 0, sizeof options);
  options.struct_bytes = sizeof options;
  options.kernel = name;
  options.target = "cuda";
  memset(&where, 0, sizeof where);
  where.struct_bytes = sizeof where;
  if (tegula_compile(context, program, &options, &kernel, &message) != TEGULA_OK ||
      tegula_prepare(kernel, arguments, count, &call, &message) != TEGULA_OK)
    fail(tegula_message_text(message));
  for (i = 0; i < count; ++i) {
    tegula_argument_info info = tegula_argument(kernel, i);
    data[i] = info.role == TEGULA_SCALAR ? (void *)&eps : arguments[i].data;
    arguments[i].number = eps;
  }
  for (i = 0; i < MOST; ++i)
    parameters[i] = &zero;
  for (round = 0; round < ROUNDS; ++round) {
    double begin = now();
    for (n = 0; n < CALLS; ++n)
      for (k = 0; k < launches; ++k)
        if (launchKernel(function, 1, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL))
          fail("cuLaunchKernel failed");
    plain[round] = (now() - begin) / CALLS;
    if (tegula_synchronize(kernel, NULL, &message) != TEGULA_OK)
      fail(tegula_message_text(message));
    begin = now();
    for (n = 0; n < CALLS; ++n)
      if (tegula_launch(kernel, arguments, count, &where, &message) != TEGULA_OK)
        fail(tegula_message_text(message));
    guarded[round] = (now() - begin) / CALLS;
    if (tegula_synchronize(kernel, NULL, &message) != TEGULA_OK)
      fail(tegula_message_text(message));
    begin = now();
    for (n = 0; n < CALLS; ++n)
      if (tegula_launch_prepared(call, data, count, &where, &message) != TEGULA_OK)
        fail(tegula_message_text(message));
    prepared[round] = (now() - begin) / CALLS;
    if (tegula_synchronize(kernel, NULL, &message) != TEGULA_OK)
      fail(tegula_message_text(message));
  }
  base = median(plain);
  one = median(guarded);
  two = median(prepared);
  printf("| %s | %d | %.0f | %.0f | %.0f | %.0f | %.0f |\n", name, launches, base, one, one - base, two,
         two - base);
  tegula_prepared_free(call);
  tegula_free(kernel);
}

int main(void) {
  static const int64_t vector[] = {16}, image[] = {1, 2, 2, 4}, channels[] = {4};
  void *driver = dlopen("libcuda.so.1", RTLD_NOW), *primary = NULL, *module = NULL;
  tegula_context *context = NULL;
  tegula_program *program = NULL;
  tegula_message *message = NULL;
  tegula_value arguments[MOST];
  uint64_t memory = 0;
  int i;

  if (!driver)
    fail("no libcuda.so.1");
  *(void **)&launchKernel = symbol(driver, "cuLaunchKernel");
  if (((int (*)(unsigned))symbol(driver, "cuInit"))(0) ||
      ((int (*)(void **, int))symbol(driver, "cuDevicePrimaryCtxRetain"))(&primary, 0) ||
      ((int (*)(void *))symbol(driver, "cuCtxSetCurrent"))(primary) ||
      ((int (*)(void **, const void *))symbol(driver, "cuModuleLoadData"))(&module, ptx) ||
      ((int (*)(void **, void *, const char *))symbol(driver, "cuModuleGetFunction"))(&function, module,
                                                                                     "empty") ||
      ((int (*)(uint64_t *, size_t))symbol(driver, "cuMemAlloc_v2"))(&memory, 256 * MOST))
    fail("the device cannot be used");
  if (tegula_context_create(NULL, &context, &message) != TEGULA_OK ||
      tegula_parse(source, strlen(source), NULL, &program, &message) != TEGULA_OK)
    fail(tegula_message_text(message));

  memset(arguments, 0, sizeof arguments);
  for (i = 0; i < MOST; ++i) {
    arguments[i].data = (void *)(uintptr_t)(memory + 256 * (uint64_t)i);
    arguments[i].dtype = TEGULA_F32;
    arguments[i].shape = vector;
    arguments[i].rank = 1;
  }
  printf("nanoseconds a call; `beyond` is beyond cuLaunchKernel\n"
         "| kernel | launches | cuLaunchKernel | tegula_launch | beyond | prepared | beyond |\n"
         "|---|---|---|---|---|---|---|\n");
  measure(context, program, "add", arguments, 3, 1);
  measure(context, program, "center", arguments, 2, 2);
  for (i = 0; i < 6; ++i)
    arguments[i].shape = channels;
  arguments[0].shape = arguments[5].shape = image; /* in order: inputs, outputs, scalars */
  arguments[0].rank = arguments[5].rank = 4;
  measure(context, program, "many", arguments, 7, 1);
  tegula_program_free(program);
  tegula_context_free(context);
  return 0;
}

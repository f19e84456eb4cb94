/*===- call_overhead.c - What a launch costs beside the kernel's own work -------===*\
|*                                                                                *|
|* Part of the Tegula project, under the Apache License v2.0 with LLVM            *|
|* Exceptions. See LICENSE for license information.                               *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                        *|
|*                                                                                *|
|*===----------------------------------------------------------------------------===*|
|*                                                                                *|
|* Adds vectors of 16 elements: nanoseconds of a call, the median of 101 rounds   *|
|* of 10,000 calls, for shapes that were used before; and for ever new shapes.    *|
|*                                                                                *|
\*===----------------------------------------------------------------------------===*/
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tegula/tegula.h>
#include <time.h>

static const char source[] = "kernel add(x: f32[N], y: f32[N]) -> (z: f32[N]) {\n"
                             "  z[i] = x[i] + y[i]\n"
                             "}\n";

enum { ROUNDS = 101, CALLS = 10000, LARGEST = 64 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int ascending(const void *lhs, const void *rhs) {
  double a = *(const double *)lhs, b = *(const double *)rhs;
  return (a > b) - (a < b);
}

/* Nanoseconds of a call; `sizes` different shapes are used in turn. */
static double measure(const tegula_kernel *kernel, tegula_value *arguments, int64_t *shape, int sizes) {
  double rounds[ROUNDS];
  int round, call;
  for (round = 0; round < ROUNDS; ++round) {
    double begin = now();
    for (call = 0; call < CALLS; ++call) {
      *shape = 16 + call % sizes;
      if (tegula_launch(kernel, arguments, 3, NULL, NULL) != TEGULA_OK) {
        fprintf(stderr, "a launch failed\n");
        exit(1);
      }
    }
    rounds[round] = (now() - begin) / CALLS;
  }
  qsort(rounds, ROUNDS, sizeof rounds[0], ascending);
  return rounds[ROUNDS / 2];
}

int main(void) {
  static float x[LARGEST], y[LARGEST], z[LARGEST];
  int64_t shape[1] = {16};
  tegula_context *context = NULL;
  tegula_program *program = NULL;
  tegula_kernel *kernel = NULL;
  tegula_message *message = NULL;
  tegula_value arguments[3];
  float *buffers[3];
  int i;

  if (tegula_context_create(NULL, &context, &message) != TEGULA_OK ||
      tegula_parse(source, strlen(source), NULL, &program, &message) != TEGULA_OK ||
      tegula_compile(context, program, NULL, &kernel, &message) != TEGULA_OK) {
    fprintf(stderr, "%s", tegula_message_json(message));
    return 1;
  }
  buffers[0] = x;
  buffers[1] = y;
  buffers[2] = z;
  memset(arguments, 0, sizeof arguments);
  for (i = 0; i < 3; ++i) {
    arguments[i].data = buffers[i];
    arguments[i].shape = shape;
    arguments[i].rank = 1;
    arguments[i].dtype = TEGULA_F32;
  }
  printf("one shape:     %6.0f ns a call\n", measure(kernel, arguments, shape, 1));
  printf("16 shapes:     %6.0f ns a call\n", measure(kernel, arguments, shape, 16));
  printf("unseen shapes: %6.0f ns a call\n", measure(kernel, arguments, shape, 40));

  tegula_free(kernel);
  tegula_program_free(program);
  tegula_context_free(context);
  return 0;
}

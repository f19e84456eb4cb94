// RUN: tegula-opt %s -tgl-gather-recurrences -tgl-schedule=target=sm_90a | FileCheck %s
// RUN: tegula-opt %s -tgl-gather-recurrences -tgl-schedule="target=sm_90a without=async-stores" | FileCheck %s --check-prefix=PLAIN
// RUN: tegula-opt %s -tgl-gather-recurrences -tgl-schedule="target=sm_90a without=recurrence" | FileCheck %s --check-prefix=GENERAL
// RUN: tegula-opt %s -tgl-gather-recurrences=target=sm_90a:cluster-blocks=1 -tgl-schedule="target=sm_90a:cluster-blocks=1" | FileCheck %s --check-prefix=ALONE
// GENERAL: strategy "general"
// GENERAL-NOT: recurrence =

// 65536 weights are 32 for each of 256 threads of eight blocks; no block alone has room for them. Ten clusters of eight
// run at once.
// CHECK: strategy "recurrence"
// CHECK: recurrence = array<i64: 8, 256, 1>
// PLAIN: recurrence = array<i64: 8, 256, 0>
// ALONE-NOT: recurrence =
tgl.kernel @rnn(%x: !tgl.tensor<[S, 10, 256], f32> {tgl.name = "x", tgl.role = "in"},
                %w: !tgl.tensor<[256, 256], f32> {tgl.name = "w", tgl.role = "in"},
                %h: !tgl.tensor<[10, 256], f32> {tgl.name = "h", tgl.role = "inout"}) sizes [S = 0 : 0] {
  tgl.for %t = 0 to S {
    %a = tgl.temp "a" : !tgl.tensor<[10, 256], f32>
    tgl.launch "a" {
      tgl.parallel (%n = 0 to 10, %g = 0 to 256) {
        %s = tgl.reduce sum (%k = 0 to 256) -> f32 {
          %p = tgl.read %w[%g, %k] : !tgl.tensor<[256, 256], f32>
          %q = tgl.read %h[%n, %k] : !tgl.tensor<[10, 256], f32>
          %m = arith.mulf %p, %q : f32
          tgl.yield %m : f32
        }
        tgl.write %s, %a[%n, %g] : f32, !tgl.tensor<[10, 256], f32>
      }
    }
    tgl.launch "h" {
      tgl.parallel (%n = 0 to 10, %u = 0 to 256) {
        %s = tgl.read %a[%n, %u] : !tgl.tensor<[10, 256], f32>
        %v = tgl.read %x[%t, %n, %u] : !tgl.tensor<[S, 10, 256], f32>
        %b = arith.addf %s, %v : f32
        tgl.write %b, %h[%n, %u] : f32, !tgl.tensor<[10, 256], f32>
      }
    }
  }
}

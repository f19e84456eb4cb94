// RUN: tegula-opt %s | tegula-opt | FileCheck %s
// RUN: tegula-opt %s -mlir-print-op-generic | tegula-opt | FileCheck %s

// CHECK-LABEL: tgl.kernel @loops
tgl.kernel @loops(%x: !tgl.tensor<[T, N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [T = 0 : 0, N = 0 : 1] {
  %zero = arith.constant 0.0 : f32
  // CHECK: %h = tgl.temp "h" : !tgl.tensor<[N], bf16>
  %h = tgl.temp "h" : !tgl.tensor<[N], bf16>
  // CHECK: tgl.for %t = 0 to T {
  tgl.for %t = 0 to T {
    tgl.parallel (%n = 0 to N) {
      %v = tgl.read %x[%t, %n] : !tgl.tensor<[T, N], f32>
      tgl.write %v, %h[%n] : f32, !tgl.tensor<[N], bf16>
    }
  // CHECK: }
  // CHECK-NEXT: }
  // CHECK-NEXT: tgl.parallel
  }
  tgl.parallel (%n = 0 to N) {
    // CHECK: tgl.for %t = %n to T reverse iter (%acc = %{{.*}} : f32) {
    // CHECK: tgl.yield %{{.*}} : f32
    %r = tgl.for %t = %n to T reverse iter (%acc = %zero : f32) {
      %v = tgl.read %x[%t, %n] : !tgl.tensor<[T, N], f32>
      %next = arith.addf %acc, %v : f32
      tgl.yield %next : f32
    }
    // CHECK: tgl.tiles (%j_lo, %j_hi) = 0 to %n + 1 size 4 iter (%m = %{{.*}} : f32, %l = %{{.*}} : f32) {
    // CHECK: tgl.reduce sum (%j = %j_lo to %j_hi) -> f32 {
    // CHECK: tgl.yield %{{.*}}, %l : f32, f32
    %q:2 = tgl.tiles (%j_lo, %j_hi) = 0 to %n + 1 size 4 iter (%m = %zero : f32, %l = %r : f32) {
      %s = tgl.reduce sum (%j = %j_lo to %j_hi) -> f32 {
        %v = tgl.read %x[%j, %n] : !tgl.tensor<[T, N], f32>
        tgl.yield %v : f32
      }
      tgl.yield %s, %l : f32, f32
    }
    // CHECK: tgl.tiles (%arg{{[0-9]+}}, %arg{{[0-9]+}}) = 0 to T {
    // CHECK-NEXT: }
    tgl.tiles (%b, %e) = 0 to T {
    }
    tgl.write %q#0, %y[%n] : f32, !tgl.tensor<[N], f32>
  }
}

// CHECK-LABEL: tgl.kernel private @square
tgl.kernel private @square(%a: !tgl.tensor<[N], f32> {tgl.name = "a", tgl.role = "in"},
                           %b: !tgl.tensor<[N], f32> {tgl.name = "b", tgl.role = "out"}) {
  tgl.parallel (%n = 0 to N) {
    %v = tgl.read %a[%n] : !tgl.tensor<[N], f32>
    %w = arith.mulf %v, %v : f32
    tgl.write %w, %b[%n] : f32, !tgl.tensor<[N], f32>
  }
}

// CHECK-LABEL: tgl.kernel @calls
tgl.kernel @calls(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [N = 0 : 0] {
  %h = tgl.temp "h" : !tgl.tensor<[N], f32>
  // CHECK: tgl.call @square(%x, %h) : !tgl.tensor<[N], f32>, !tgl.tensor<[N], f32>
  tgl.call @square(%x, %h) : !tgl.tensor<[N], f32>, !tgl.tensor<[N], f32>
  // CHECK: tgl.launch "second" strategy "general" attributes {schedule = {threads = 128 : i64}} {
  tgl.launch "second" strategy "general" attributes {schedule = {threads = 128 : i64}} {
    tgl.parallel (%n = 0 to N) {
      %v = tgl.read %h[%n] : !tgl.tensor<[N], f32>
      // CHECK: tgl.convert %{{.*}} to f16 : f32 -> f32
      %r = tgl.convert %v to f16 : f32 -> f32
      // CHECK: %[[Q:.*]] = tgl.convert %{{.*}} to i4 nearest : f32 -> i32
      %q = tgl.convert %r to i4 nearest : f32 -> i32
      // CHECK: %[[K:.*]] = arith.extsi
      %k = arith.extsi %q : i32 to i64
      // CHECK: tgl.random uniform %[[K]], %[[K]] -> f32
      %u = tgl.random uniform %k, %k -> f32
      // CHECK: tgl.random normal %[[K]] -> f32
      %g = tgl.random normal %k -> f32
      tgl.write %g, %y[%n] : f32, !tgl.tensor<[N], f32>
    }
  }
}

// CHECK-LABEL: tgl.kernel @sort
tgl.kernel @sort(%v: !tgl.tensor<[M, N], f32> {tgl.name = "v", tgl.role = "inout"},
                 %p: !tgl.tensor<[M, N], i64> {tgl.name = "p", tgl.role = "inout"})
    sizes [M = 0 : 0, N = 0 : 1] {
  tgl.parallel (%i = 0 to M) {
    // CHECK: tgl.sort %v, %p[%i] : !tgl.tensor<[M, N], f32>, !tgl.tensor<[M, N], i64>
    tgl.sort %v, %p[%i] : !tgl.tensor<[M, N], f32>, !tgl.tensor<[M, N], i64>
    // CHECK: tgl.sort %v, %p[M - %i - 1] descending : !tgl.tensor<[M, N], f32>, !tgl.tensor<[M, N], i64>
    tgl.sort %v, %p[M - 1 - %i] descending : !tgl.tensor<[M, N], f32>, !tgl.tensor<[M, N], i64>
  }
}

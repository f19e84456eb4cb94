// RUN: tegula-opt %s --tgl-expand-scans | FileCheck %s

// A cumulative sum is a loop that carries the sum and stores every step.
// CHECK-LABEL: tgl.kernel @cumsum
// CHECK: %[[C:.*]] = tgl.temp "cumsum" : !tgl.tensor<[M, N], f32>
// CHECK: tgl.parallel (%i = 0 to M) {
// CHECK: tgl.for %k = 0 to N iter (%[[ACC:.*]] = %{{.*}} : f32)
// CHECK: %[[NEXT:.*]] = arith.addf %[[ACC]], %{{.*}}
// CHECK: tgl.write %[[NEXT]], %[[C]][%i, %k]
// CHECK: tgl.yield %[[NEXT]]
// CHECK: tgl.parallel (%i = 0 to M, %j = 0 to N) {
// CHECK: tgl.read %[[C]][%i, %j]
tgl.kernel @cumsum(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, N = 0 : 1] {
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %s = tgl.scan cumsum (%k = 0 to N) at [%j] -> f32 {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
}

// exclusive stores what was carried; reverse walks down.
// CHECK-LABEL: tgl.kernel @exclusive
// CHECK: tgl.for %k = 0 to N reverse iter (%[[ACC:.*]] = %{{.*}} : f32)
// CHECK: %[[NEXT:.*]] = arith.maximumf %[[ACC]], %{{.*}}
// CHECK: tgl.write %[[ACC]], %{{.*}}[%k]
tgl.kernel @exclusive(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                      %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.parallel (%j = 0 to N) {
    %s = tgl.scan cummax reverse exclusive (%k = 0 to N) at [%j] -> f32 {
      %v = tgl.read %x[%k] : !tgl.tensor<[N], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%j] : f32, !tgl.tensor<[N], f32>
  }
}

// h[t] = a[t]*h[t-1] + b[t]: the region yields a and b.
// CHECK-LABEL: tgl.kernel @recurrence
// CHECK: tgl.for %t = 0 to T iter (%[[H:.*]] = %{{.*}} : f32)
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %[[H]]
// CHECK: arith.addf %[[P]], %{{.*}}
tgl.kernel @recurrence(%a: !tgl.tensor<[T], f32> {tgl.name = "a", tgl.role = "in"},
                       %b: !tgl.tensor<[T], f32> {tgl.name = "b", tgl.role = "in"},
                       %y: !tgl.tensor<[T], f32> {tgl.name = "y", tgl.role = "out"}) sizes [T = 0 : 0] {
  tgl.parallel (%j = 0 to T) {
    %s = tgl.scan recurrence (%t = 0 to T) at [%j] -> f32 {
      %v = tgl.read %a[%t] : !tgl.tensor<[T], f32>
      %w = tgl.read %b[%t] : !tgl.tensor<[T], f32>
      tgl.yield %v, %w : f32, f32
    }
    tgl.write %s, %y[%j] : f32, !tgl.tensor<[T], f32>
  }
}

// The positions of the largest: the row and its positions are stored, sorted and read.
// CHECK-LABEL: tgl.kernel @topk
// CHECK: %[[V:.*]] = tgl.temp "topk_index" : !tgl.tensor<[M, N], f32>
// CHECK: %[[P:.*]] = tgl.temp "topk_index_at" : !tgl.tensor<[M, N], i64>
// CHECK: tgl.parallel (%i = 0 to M, %k = 0 to N) {
// CHECK: tgl.write %{{.*}}, %[[V]][%i, %k]
// CHECK: tgl.write %{{.*}}, %[[P]][%i, %k]
// CHECK: tgl.parallel (%i = 0 to M) {
// CHECK: tgl.sort %[[V]], %[[P]][%i] descending
// CHECK: tgl.parallel (%i = 0 to M, %r = 0 to 2) {
// CHECK: tgl.read %[[P]][%i, %r]
tgl.kernel @topk(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[M, 2], i64> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, N = 0 : 1] guards [nonneg N - 2 : "topk needs two elements"] {
  tgl.parallel (%i = 0 to M, %r = 0 to 2) {
    %s = tgl.scan topk_index (%k = 0 to N) at [%r] -> i64 {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %y[%i, %r] : i64, !tgl.tensor<[M, 2], i64>
  }
}

// The axis of a scan is where the tensor has it that the scan reads: neighbours of what is read are neighbours of what is written.
// CHECK-LABEL: tgl.kernel @states
// CHECK: %[[R:.*]] = tgl.temp "recurrence" : !tgl.tensor<[B, L, N], f32>
// CHECK: tgl.parallel (%b = 0 to B, %n = 0 to N) {
// CHECK: tgl.for %k = 0 to L
// CHECK: tgl.write %{{.*}}, %[[R]][%b, %k, %n]
// CHECK: tgl.parallel (%b = 0 to B, %l = 0 to L, %n = 0 to N) {
// CHECK: tgl.read %[[R]][%b, %l, %n]
tgl.kernel @states(%a: !tgl.tensor<[B, L], f32> {tgl.name = "a", tgl.role = "in"},
                   %x: !tgl.tensor<[B, L, N], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[B, L, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [B = 1 : 0, L = 1 : 1, N = 1 : 2] {
  tgl.parallel (%b = 0 to B, %l = 0 to L, %n = 0 to N) {
    %s = tgl.scan recurrence (%k = 0 to L) at [%l] -> f32 {
      %v = tgl.read %a[%b, %k] : !tgl.tensor<[B, L], f32>
      %w = tgl.read %x[%b, %k, %n] : !tgl.tensor<[B, L, N], f32>
      tgl.yield %v, %w : f32, f32
    }
    tgl.write %s, %y[%b, %l, %n] : f32, !tgl.tensor<[B, L, N], f32>
  }
}

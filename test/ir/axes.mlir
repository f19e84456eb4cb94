// RUN: tegula-opt %s | tegula-opt | FileCheck %s
// RUN: tegula-opt %s -mlir-print-op-generic | tegula-opt | FileCheck %s

// CHECK-LABEL: tgl.kernel @parallel
tgl.kernel @parallel(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                     %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, N = 0 : 1] {
  // CHECK: tgl.parallel () {
  tgl.parallel () {
  }
  // CHECK: tgl.parallel (%i = 0 to M) {
  tgl.parallel (%i = 0 to M) {
    // Bounds use outer axes and earlier ones of the list.
    // CHECK: tgl.parallel (%j = %i to %i + 1, %k = %j to %i + %j) attributes {mapping = "lanes"} {
    tgl.parallel (%j = %i to %i + 1, %k = %j to %i + %j) attributes {mapping = "lanes"} {
      // A name that is taken gets another SSA name, and keeps itself as an attribute.
      // CHECK: tgl.parallel (%i_0 = %i to N) attributes {names = ["i"]} {
      tgl.parallel (%again = %i to N) attributes {names = ["i"]} {
      }
    }
  }
  // CHECK: tgl.parallel (%arg{{[0-9]+}} = 0 to M) {
  tgl.parallel (%0 = 0 to M) {
  }
}

// CHECK-LABEL: tgl.kernel @reduce
tgl.kernel @reduce(%x: !tgl.tensor<[M, K], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[M], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, K = 0 : 1] {
  tgl.parallel (%i = 0 to M) {
    // CHECK: tgl.reduce sum (%k = 0 to %i + 1) -> f32 {
    // CHECK-NEXT: tgl.read
    // CHECK-NEXT: tgl.yield %{{.*}} : f32
    %s = tgl.reduce sum (%k = 0 to %i + 1) -> f32 {
      %a = tgl.read %x[%i, %k] : !tgl.tensor<[M, K], f32>
      tgl.yield %a : f32
    }
    // CHECK: tgl.reduce var filtered unbiased (%k = 0 to K, %l = %k to K) -> f32 attributes {mapping = "warp"} {
    %v = tgl.reduce var unbiased filtered (%k = 0 to K, %l = %k to K) -> f32 attributes {mapping = "warp"} {
      %a = tgl.read %x[%i, %k] : !tgl.tensor<[M, K], f32>
      %c = arith.cmpf olt, %a, %s : f32
      tgl.yield %a, %c : f32, i1
    }
    // CHECK: tgl.reduce argmax (%k = 0 to K) -> i64 {
    %m = tgl.reduce argmax (%k = 0 to K) -> i64 {
      %a = tgl.read %x[%i, %k] : !tgl.tensor<[M, K], f32>
      tgl.yield %a : f32
    }
    tgl.write %v, %y[%i] : f32, !tgl.tensor<[M], f32>
  }
}

// CHECK-LABEL: tgl.kernel @scan
tgl.kernel @scan(%x: !tgl.tensor<[M, K], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[M, K], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, K = 0 : 1] {
  tgl.parallel (%i = 0 to M, %j = 0 to K) {
    // CHECK: tgl.scan cumsum reverse exclusive (%k = 0 to K) at [%j] -> f32 {
    %a = tgl.scan cumsum exclusive reverse (%k = 0 to K) at [%j] -> f32 {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, K], f32>
      tgl.yield %v : f32
    }
    // CHECK: tgl.scan softmax (%k = 0 to M, %l = 0 to K) at [%i, %j] -> f32 {
    %b = tgl.scan softmax (%k = 0 to M, %l = 0 to K) at [%i, %j] -> f32 {
      %v = tgl.read %x[%k, %l] : !tgl.tensor<[M, K], f32>
      tgl.yield %v : f32
    }
    // CHECK: tgl.scan argsort descending (%k = 0 to K) at [K - %j - 1] -> i64 {
    %c = tgl.scan argsort descending (%k = 0 to K) at [K - 1 - %j] -> i64 {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, K], f32>
      tgl.yield %v : f32
    }
    // CHECK: tgl.scan recurrence (%t = 0 to K) at [%j] init %{{.*}} -> f32 {
    // CHECK: tgl.yield %{{.*}}, %{{.*}} : f32, f32
    %d = tgl.scan recurrence (%t = 0 to K) at [%j] init %b -> f32 {
      %v = tgl.read %x[%i, %t] : !tgl.tensor<[M, K], f32>
      tgl.yield %v, %v : f32, f32
    }
    tgl.write %d, %y[%i, %j] : f32, !tgl.tensor<[M, K], f32>
  }
}

// RUN: tegula-opt %s --tgl-order-sums --split-input-file | FileCheck %s

// Sums that are to be the same in any batch have the program's order too; rows of the batch stay apart.
// CHECK-LABEL: tgl.kernel @batch
// CHECK: tgl.parallel (%[[M:.*]] = 0 to M) {
// CHECK-NEXT: tgl.for %[[N:.*]] = 0 to N
// CHECK: tgl.write add
tgl.kernel @batch(%ids: !tgl.tensor<[M, N], i64> {tgl.name = "ids", tgl.role = "in"},
                  %y: !tgl.tensor<[M, V], f32> {tgl.name = "y", tgl.role = "inout"})
    sizes [M = 0 : 0, N = 0 : 1, V = 1 : 1] attributes {invariant = ["M"]} {
  tgl.parallel (%m = 0 to M, %n = 0 to N) {
    %id = tgl.read %ids[%m, %n] : !tgl.tensor<[M, N], i64>
    %column = arith.index_cast %id : i64 to index
    %v = arith.constant 0.1 : f32
    tgl.write add %v, %y[%m, %column] : f32, !tgl.tensor<[M, V], f32>
  }
}

// -----

// Rows with the same number meet at an element: those of one column are one thread's, in order.
// CHECK-LABEL: tgl.kernel @rows
// CHECK: tgl.parallel (%[[D:.*]] = 0 to D) {
// CHECK-NEXT: tgl.for %[[N:.*]] = 0 to N
// CHECK: tgl.read %ids[%[[N]]]
// CHECK: tgl.read %x[%[[N]], %[[D]]]
// CHECK: tgl.write add
tgl.kernel @rows(%ids: !tgl.tensor<[N], i64> {tgl.name = "ids", tgl.role = "in"},
                 %x: !tgl.tensor<[N, D], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[V, D], f32> {tgl.name = "y", tgl.role = "inout"})
    sizes [N = 0 : 0, D = 1 : 1, V = 2 : 0] attributes {deterministic} {
  tgl.parallel (%n = 0 to N, %d = 0 to D) {
    %id = tgl.read %ids[%n] : !tgl.tensor<[N], i64>
    %row = arith.index_cast %id : i64 to index
    %v = tgl.read %x[%n, %d] : !tgl.tensor<[N, D], f32>
    tgl.write add %v, %y[%row, %d] : f32, !tgl.tensor<[V, D], f32>
  }
}

// RUN: tegula-opt %s | tegula-opt | FileCheck %s
// RUN: tegula-opt %s -mlir-print-op-generic | tegula-opt | FileCheck %s

// CHECK-LABEL: tgl.kernel @read
tgl.kernel @read(%x: !tgl.tensor<[N, W], bf16> {tgl.name = "x", tgl.role = "in"},
                 %ids: !tgl.tensor<[N], i32> {tgl.name = "ids", tgl.role = "in"},
                 %y: !tgl.tensor<[N, W], f32> {tgl.name = "y", tgl.role = "out"},
                 %total: !tgl.tensor<[], f64> {tgl.name = "total", tgl.role = "inout"})
    sizes [N = 0 : 0, W = 0 : 1] {
  %zero = arith.constant 0.0 : f32
  %yes = arith.constant true
  tgl.parallel (%n = 0 to N, %w = 0 to W) {
    // CHECK: tgl.read %x[%n, %w] : !tgl.tensor<[N, W], bf16>
    %a = tgl.read %x[%n, %w] : !tgl.tensor<[N, W], bf16>
    // CHECK: tgl.read %x[%n, %n + 2*%w - 1] fill %{{.*}} if %true : !tgl.tensor<[N, W], bf16>
    %b = tgl.read %x[%n, 2*%w + %n - 1] fill %zero if %yes : !tgl.tensor<[N, W], bf16>
    // CHECK: tgl.read %x[%n, (W - %w) floordiv 3] exact (W - %w by 3, %n by W) fill %{{.*}} : !tgl
    %c = tgl.read %x[%n, (W - %w) floordiv 3] exact (W - %w by 3, %n by W) fill %zero : !tgl.tensor<[N, W], bf16>
    // CHECK: %[[I:.*]] = tgl.read %ids[%n] : !tgl.tensor<[N], i32>
    %i = tgl.read %ids[%n] : !tgl.tensor<[N], i32>
    // CHECK: %[[J:.*]] = arith.index_cast %[[I]] : i32 to index
    %j = arith.index_cast %i : i32 to index
    // CHECK: tgl.read %x[%[[J]], %w] checked "ids[n]" : !tgl.tensor<[N, W], bf16>
    %d = tgl.read %x[%j, %w] checked "ids[n]" : !tgl.tensor<[N, W], bf16>
    // CHECK: %[[S:.*]] = tgl.index where(%w + 1 le %n, 2*%w, min(%w, W - %n))
    %s = tgl.index where(%w lt %n, 2*%w, min(W - %n, %w))
    // CHECK: tgl.write %{{.*}}, %y[%n, %[[S]]] : f32, !tgl.tensor<[N, W], f32>
    tgl.write %a, %y[%n, %s] : f32, !tgl.tensor<[N, W], f32>
    // CHECK: tgl.write add %{{.*}}, %y[%[[J]], W - %w - 1] if %true checked "ids[n]" : f32, !tgl.tensor<[N, W], f32>
    tgl.write add %b, %y[%j, W - 1 - %w] if %yes checked "ids[n]" : f32, !tgl.tensor<[N, W], f32>
    // CHECK: tgl.write max %{{.*}}, %y[%n, %w] : f32, !tgl.tensor<[N, W], f32>
    tgl.write max %b, %y[%n, %w] : f32, !tgl.tensor<[N, W], f32>
    // CHECK: tgl.write any %{{.*}}, %y[%n, %w] {distinct = "ids"} : f32, !tgl.tensor<[N, W], f32>
    tgl.write any %b, %y[%n, %w] {distinct = "ids"} : f32, !tgl.tensor<[N, W], f32>
  }
  // CHECK: tgl.read %total[] : !tgl.tensor<[], f64>
  %t = tgl.read %total[] : !tgl.tensor<[], f64>
  // CHECK: tgl.write %{{.*}}, %total[] : f64, !tgl.tensor<[], f64>
  tgl.write %t, %total[] : f64, !tgl.tensor<[], f64>
}

// CHECK-LABEL: tgl.kernel @index
tgl.kernel @index(%y: !tgl.tensor<[M, M], i64> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, "d0" = 2*M] {
  // CHECK: tgl.index 3*M + 1
  %c = tgl.index (M + 1)*3 - 2
  // CHECK: tgl.index "d0" floordiv 2
  %d = tgl.index "M" + "d0" floordiv 2 - M
  // A value that stands twice is one operand.
  // CHECK: tgl.index %[[A:.*]]*%[[A]] + %[[A]]
  %e = tgl.index %c*%c + %c
} 

// RUN: tegula-opt %s --tgl-inline | FileCheck %s

// A called kernel's statements stand where the call stood, on the caller's tensors.
// CHECK-NOT: tgl.kernel private
// CHECK-LABEL: tgl.kernel @twice
// CHECK: %[[H:.*]] = tgl.temp "h"
// CHECK-NEXT: tgl.parallel (%i = 0 to N) {
// CHECK: tgl.read %x[%i]
// CHECK: tgl.write %{{.*}}, %[[H]][%i]
// CHECK: tgl.parallel (%i = 0 to N) {
// CHECK: tgl.read %[[H]][%i]
// CHECK: tgl.write %{{.*}}, %y[%i]
// CHECK-NOT: tgl.call
tgl.kernel private @double(%a: !tgl.tensor<[N], f32> {tgl.name = "a", tgl.role = "in"},
                           %b: !tgl.tensor<[N], f32> {tgl.name = "b", tgl.role = "out"}) {
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %a[%i] : !tgl.tensor<[N], f32>
    %w = arith.addf %v, %v : f32
    tgl.write %w, %b[%i] : f32, !tgl.tensor<[N], f32>
  }
}
tgl.kernel @twice(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  %h = tgl.temp "h" : !tgl.tensor<[N], f32>
  tgl.call @double(%x, %h) : !tgl.tensor<[N], f32>, !tgl.tensor<[N], f32>
  tgl.call @double(%h, %y) : !tgl.tensor<[N], f32>, !tgl.tensor<[N], f32>
}

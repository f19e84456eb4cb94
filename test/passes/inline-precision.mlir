// RUN: tegula-opt %s --tgl-inline | FileCheck %s

// A callee's precision stays on its sums; those of the caller have the caller's.
// CHECK-LABEL: tgl.kernel @caller
// CHECK: tgl.reduce sum {{.*}} attributes {precision = "tf32"}
// CHECK: tgl.reduce sum (%k = 0 to N) -> f32 {
tgl.kernel private @total(%a: !tgl.tensor<[N], f32> {tgl.name = "a", tgl.role = "in"},
                          %b: !tgl.tensor<[], f32> {tgl.name = "b", tgl.role = "out"})
    attributes {precision = "tf32"} {
  tgl.parallel () {
    %s = tgl.reduce sum (%k = 0 to N) -> f32 {
      %v = tgl.read %a[%k] : !tgl.tensor<[N], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %b[] : f32, !tgl.tensor<[], f32>
  }
}
tgl.kernel @caller(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[], f32> {tgl.name = "y", tgl.role = "out"},
                   %z: !tgl.tensor<[], f32> {tgl.name = "z", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.call @total(%x, %y) : !tgl.tensor<[N], f32>, !tgl.tensor<[], f32>
  tgl.parallel () {
    %s = tgl.reduce sum (%k = 0 to N) -> f32 {
      %v = tgl.read %x[%k] : !tgl.tensor<[N], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %z[] : f32, !tgl.tensor<[], f32>
  }
}

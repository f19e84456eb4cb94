// RUN: tegula-opt %s --tgl-pipeline --tgl-counters -o %t 2>&1 | FileCheck %s
// RUN: tegula-opt %s '--tgl-pipeline=disable=tgl-bound-loops' --tgl-counters -o %t 2>&1 | FileCheck %s --check-prefix=OFF

// Passes count what they do; a pass that is left out counts nothing.
// CHECK: tgl-bound-loops: 1 bounds tightened
// CHECK: tgl-expand-reductions: 1 reductions expanded
// CHECK: tgl-fuse: 1 launches
// OFF-NOT: tgl-bound-loops
// OFF: tgl-fuse: 1 launches
tgl.kernel @mean(%x: !tgl.tensor<[M, M], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[M], f32> {tgl.name = "y", tgl.role = "out"}) sizes [M = 0 : 0] {
  tgl.parallel (%i = 0 to M) {
    %r = tgl.reduce mean filtered (%k = 0 to M) -> f32 {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, M], f32>
      %c = arith.cmpi sle, %k, %i : index
      tgl.yield %v, %c : f32, i1
    }
    tgl.write %r, %y[%i] : f32, !tgl.tensor<[M], f32>
  }
}

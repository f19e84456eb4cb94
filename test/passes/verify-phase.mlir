// RUN: tegula-opt %s --tgl-pipeline | FileCheck %s
// RUN: tegula-opt %s '--tgl-pipeline=stop-after=simplify' | FileCheck %s --check-prefix=SIMPLIFY

// What the pipeline makes satisfies its own invariants, phase by phase.
// CHECK: tgl.launch "y" strategy "general"
// SIMPLIFY: tgl.reduce mean
// SIMPLIFY-NOT: tgl.launch
tgl.kernel @mean(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[M], f32> {tgl.name = "y", tgl.role = "out"}) sizes [M = 0 : 0, N = 0 : 1] {
  tgl.parallel (%i = 0 to M) {
    %r = tgl.reduce mean (%k = 0 to N) -> f32 {
      %v = tgl.read %x[%i, %k] : !tgl.tensor<[M, N], f32>
      tgl.yield %v : f32
    }
    tgl.write %r, %y[%i] : f32, !tgl.tensor<[M], f32>
  }
}

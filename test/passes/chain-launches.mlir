// RUN: tegula-opt %s --tgl-chain-launches --tgl-counters 2>&1 | FileCheck %s

// CHECK-LABEL: tgl.kernel @copy
// CHECK: tgl.write %{{.*}}, %y[%i]
// CHECK: tgl-chain-launches: 1 kernels seen
tgl.kernel @copy(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %x[%i] : !tgl.tensor<[N], f32>
    tgl.write %v, %y[%i] : f32, !tgl.tensor<[N], f32>
  }
}

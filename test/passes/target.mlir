// RUN: not tegula-opt %s --tgl-schedule=target=sm_70 2>&1 | FileCheck %s
// RUN: not tegula-opt %s --tgl-order-windows=target=sm_90a:no-clusters 2>&1 | FileCheck %s --check-prefix=PART
// RUN: tegula-opt %s --tgl-schedule=target=sm_90a:no-bulk-copies

// CHECK: 'sm_70' is no target such as sm_90a or cpu
// PART: 'sm_90a:no-clusters' is no target
tgl.kernel @copy(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.launch "y" {
    tgl.parallel (%i = 0 to N) {
      %v = tgl.read %x[%i] : !tgl.tensor<[N], f32>
      tgl.write %v, %y[%i] : f32, !tgl.tensor<[N], f32>
    }
  }
}

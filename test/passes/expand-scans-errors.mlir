// RUN: tegula-opt %s --tgl-expand-scans --verify-diagnostics

tgl.kernel @inplace(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "inout"}) sizes [N = 0 : 0] {
  tgl.parallel (%j = 0 to N) {
    // expected-error @below {{the scan depends on a tensor that its statement writes}}
    %s = tgl.scan cumsum (%k = 0 to N) at [%j] -> f32 {
      %v = tgl.read %x[%k] : !tgl.tensor<[N], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %x[%j] : f32, !tgl.tensor<[N], f32>
  }
}

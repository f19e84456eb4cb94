// RUN: tegula-opt %s '--tgl-verify-phase=phase=fuse' --split-input-file --verify-diagnostics

tgl.kernel @scan(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.launch "y" {
    tgl.parallel (%j = 0 to N) {
      // expected-error @below {{a scan is left after phase fuse (pass tgl-expand-scans)}}
      %s = tgl.scan cumsum (%k = 0 to N) at [%j] -> f32 {
        %v = tgl.read %x[%k] : !tgl.tensor<[N], f32>
        tgl.yield %v : f32
      }
      tgl.write %s, %y[%j] : f32, !tgl.tensor<[N], f32>
    }
  }
}

// -----

tgl.kernel @mean(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.launch "y" {
    tgl.parallel () {
      // expected-error @below {{reduction mean is left after phase fuse (pass tgl-expand-reductions)}}
      %s = tgl.reduce mean (%k = 0 to N) -> f32 {
        %v = tgl.read %x[%k] : !tgl.tensor<[N], f32>
        tgl.yield %v : f32
      }
      tgl.write %s, %y[] : f32, !tgl.tensor<[], f32>
    }
  }
}

// -----

tgl.kernel @bare(%y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "inout"}) sizes [N = 0 : 0] {
  // expected-error @below {{a statement is in no launch after phase fuse (pass tgl-fuse)}}
  tgl.parallel (%j = 0 to N) {
    %zero = arith.constant 0.0 : f32
    tgl.write %zero, %y[%j] : f32, !tgl.tensor<[N], f32>
  }
}

// RUN: tegula-opt %s -tgl-schedule=target=sm_90a -split-input-file | FileCheck %s
// RUN: tegula-opt %s -tgl-schedule="target=sm_90a without=scan-tiles" -split-input-file | FileCheck %s --check-prefix=GENERAL
// RUN: tegula-opt %s -tgl-schedule -split-input-file | FileCheck %s --check-prefix=GENERAL

// A loop for which tgl-split-scans has chosen tiles, in a statement of its own. The statement gets the tile too.
// CHECK: strategy "scan-tiles"
// CHECK: tgl.for {{.*}}
// CHECK: }
// GENERAL: strategy "general"
// GENERAL-NOT: } {scan_tile
tgl.kernel @row(%x: !tgl.tensor<[1048576], f32> {tgl.name = "x", tgl.role = "in"},
                %y: !tgl.tensor<[1048576], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.launch "y" {
    tgl.parallel () {
      %zero = arith.constant 0.0 : f32
      %0 = tgl.for %i = 0 to 1048576 iter (%c = %zero : f32) attributes {scan_tile = array<i64: 1, 16, 16>} {
        %v = tgl.read %x[%i] : !tgl.tensor<[1048576], f32>
        %n = arith.addf %c, %v : f32
        tgl.write %n, %y[%i] : f32, !tgl.tensor<[1048576], f32>
        tgl.yield %n : f32
      }
    }
  }
}

// -----

// What does more than the loop stays general.
// CHECK: strategy "general"
// CHECK-NEXT: tgl.parallel () attributes {mapping = ""}
tgl.kernel @last(%x: !tgl.tensor<[1048576], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[1048576], f32> {tgl.name = "y", tgl.role = "out"},
                 %s: !tgl.tensor<[], f32> {tgl.name = "s", tgl.role = "out"}) {
  tgl.launch "y" {
    tgl.parallel () {
      %zero = arith.constant 0.0 : f32
      %0 = tgl.for %i = 0 to 1048576 iter (%c = %zero : f32) attributes {scan_tile = array<i64: 1, 16, 16>} {
        %v = tgl.read %x[%i] : !tgl.tensor<[1048576], f32>
        %n = arith.addf %c, %v : f32
        tgl.write %n, %y[%i] : f32, !tgl.tensor<[1048576], f32>
        tgl.yield %n : f32
      }
      tgl.write %0, %s[] : f32, !tgl.tensor<[], f32>
    }
  }
}

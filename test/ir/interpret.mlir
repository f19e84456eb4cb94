// RUN: tegula-interpret %s --kernel=iota -d N=4 | FileCheck %s
// RUN: tegula-opt %s -mlir-print-op-generic | tegula-interpret - --kernel=square -d N=3 --against=%s
// RUN: not tegula-interpret %s --kernel=past -d N=3 2>&1 | FileCheck %s --check-prefix=PAST
// RUN: not tegula-interpret %s --kernel=last -d N=3 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not tegula-interpret %s --kernel=square 2>&1 | FileCheck %s --check-prefix=SIZES

// CHECK: y: f32[4] = 0 2 4 6
tgl.kernel @iota(%y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"},
                 %s: f32 {tgl.name = "s", tgl.role = "scalar"}) sizes [N = 0 : 0] {
  tgl.parallel (%i = 0 to N) {
    %k = arith.index_cast %i : index to i64
    %v = arith.sitofp %k : i64 to f32
    %w = arith.mulf %v, %s : f32
    tgl.write %w, %y[%i] : f32, !tgl.tensor<[N], f32>
  }
}

// SIZES: no value for 'N', a dim of 'x'; give sizes with -d
tgl.kernel @square(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %x[%i] : !tgl.tensor<[N], f32>
    %w = arith.mulf %v, %v : f32
    tgl.write %w, %y[%i] : f32, !tgl.tensor<[N], f32>
  }
}

tgl.kernel @past(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.parallel (%i = 0 to N) {
    // PAST: interpret.mlir:[[#@LINE+1]]:10: error: x[3] (x is [3]) is outside the tensor
    %v = tgl.read %x[%i + 1] : !tgl.tensor<[N], f32>
    tgl.write %v, %y[%i] : f32, !tgl.tensor<[N], f32>
  }
}

tgl.kernel @last(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.parallel (%i = 0 to N) {
    %v = tgl.read %x[%i] : !tgl.tensor<[N], f32>
    // ORDER: interpret.mlir:[[#@LINE+1]]:5: error: y[] (y is []) is written by two points
    tgl.write %v, %y[] : f32, !tgl.tensor<[], f32>
  }
}

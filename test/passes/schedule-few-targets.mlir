// RUN: tegula-opt %s -tgl-schedule=target=sm_90a -split-input-file | FileCheck %s
// RUN: tegula-opt %s -tgl-schedule="target=sm_90a without=few-targets" -split-input-file | FileCheck %s --check-prefix=GENERAL
// RUN: tegula-opt %s -tgl-schedule -split-input-file | FileCheck %s --check-prefix=GENERAL

// Many points add to few elements: 32 copies of 64, two blocks of 512 threads on each multiprocessor.
// CHECK: strategy "few-targets"
// CHECK: few_targets = array<i64: 32, 264, 512>
// GENERAL: strategy "general"
// GENERAL-NOT: few_targets
tgl.kernel @bins(%x: !tgl.tensor<[4194304], i32> {tgl.name = "x", tgl.role = "in"},
                 %h: !tgl.tensor<[64], i32> {tgl.name = "h", tgl.role = "inout"}) {
  tgl.launch "h" {
    tgl.parallel (%i = 0 to 4194304) {
      %one = arith.constant 1 : i32
      %v = tgl.read %x[%i] : !tgl.tensor<[4194304], i32>
      %k = arith.index_cast %v : i32 to index
      tgl.write add %one, %h[%k] checked "h[x[i]]" : i32, !tgl.tensor<[64], i32>
    }
  }
}

// -----

// Rows are apart: a block has one of them, and two blocks share it.
// CHECK: strategy "few-targets"
// CHECK: few_targets = array<i64: 32, 2, 512>
tgl.kernel @rows(%x: !tgl.tensor<[300, 65536], i32> {tgl.name = "x", tgl.role = "in"},
                 %h: !tgl.tensor<[300, 64], i32> {tgl.name = "h", tgl.role = "inout"}) {
  tgl.launch "h" {
    tgl.parallel (%b = 0 to 300, %i = 0 to 65536) {
      %one = arith.constant 1 : i32
      %v = tgl.read %x[%b, %i] : !tgl.tensor<[300, 65536], i32>
      %k = arith.index_cast %v : i32 to index
      tgl.write add %one, %h[%b, %k] checked "h[b, x[b, i]]" : i32, !tgl.tensor<[300, 64], i32>
    }
  }
}

// -----

// More than shared memory holds.
// CHECK: strategy "general"
tgl.kernel @many(%x: !tgl.tensor<[4194304], i32> {tgl.name = "x", tgl.role = "in"},
                 %h: !tgl.tensor<[100000], i32> {tgl.name = "h", tgl.role = "inout"}) {
  tgl.launch "h" {
    tgl.parallel (%i = 0 to 4194304) {
      %one = arith.constant 1 : i32
      %v = tgl.read %x[%i] : !tgl.tensor<[4194304], i32>
      %k = arith.index_cast %v : i32 to index
      tgl.write add %one, %h[%k] checked "h[x[i]]" : i32, !tgl.tensor<[100000], i32>
    }
  }
}

// -----

// What reads an element of the sums would see those of other blocks.
// CHECK: strategy "general"
tgl.kernel @reads(%x: !tgl.tensor<[4194304], i32> {tgl.name = "x", tgl.role = "in"},
                  %h: !tgl.tensor<[2, 64], i32> {tgl.name = "h", tgl.role = "inout"}) {
  tgl.launch "h" {
    tgl.parallel (%i = 0 to 4194304) {
      %v = tgl.read %x[%i] : !tgl.tensor<[4194304], i32>
      %k = arith.index_cast %v : i32 to index
      %w = tgl.read %h[1, %k] checked "h[1, x[i]]" : !tgl.tensor<[2, 64], i32>
      tgl.write add %w, %h[0, %k] checked "h[0, x[i]]" : i32, !tgl.tensor<[2, 64], i32>
    }
  }
}

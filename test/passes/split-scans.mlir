// RUN: tegula-opt %s --tgl-split-scans=threads=4096 --split-input-file | FileCheck %s

// A row of a million steps, in tiles of 256 threads with 16 elements each, in groups of 16 parts as the machine runs at
// once.
// CHECK-LABEL: tgl.kernel @row
// CHECK: tgl.parallel ()
// CHECK: tgl.for %[[I:.*]] = 0 to 1048576 iter {{.*}}scan_tile = array<i64: 1, 16, 16>
// CHECK: tgl.write %{{.*}}, %y[%[[I]]]
// CHECK-NOT: tgl.parallel
tgl.kernel @row(%x: !tgl.tensor<[1048576], f32> {tgl.name = "x", tgl.role = "in"},
                %y: !tgl.tensor<[1048576], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel () {
    %zero = arith.constant 0.0 : f32
    %0 = tgl.for %i = 0 to 1048576 iter (%c = %zero : f32) {
      %v = tgl.read %x[%i] : !tgl.tensor<[1048576], f32>
      %n = arith.addf %c, %v : f32
      tgl.write %n, %y[%i] : f32, !tgl.tensor<[1048576], f32>
      tgl.yield %n : f32
    }
  }
}

// -----

// Along columns a tile has some that are neighbours; of few columns more steps, so that fewer groups follow each other.
// What the loop takes of its statement is read again, or kept; it has a statement of its own.
// CHECK-LABEL: tgl.kernel @columns
// CHECK: %kept = tgl.temp "kept" : !tgl.tensor<[4], f32>
// CHECK: tgl.parallel (%{{.*}} = 0 to 4)
// CHECK: tgl.reduce
// CHECK: tgl.write %{{.*}}, %kept
// CHECK-NOT: tgl.for
// CHECK: tgl.parallel (%[[J:.*]] = 0 to 4)
// CHECK: %[[S:.*]] = tgl.read %kept[%[[J]]]
// CHECK: tgl.for %{{.*}} = 0 to 10007 reverse {{.*}}scan_tile = array<i64: 4, 8, 16>
// CHECK: arith.maximumf
// CHECK: arith.divf %{{.*}}, %[[S]]
tgl.kernel @columns(%x: !tgl.tensor<[10007, 4], f32> {tgl.name = "x", tgl.role = "in"},
                    %y: !tgl.tensor<[10007, 4], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%j = 0 to 4) {
    %least = arith.constant 0xFF800000 : f32
    %s = tgl.reduce sum (%k = 0 to 10007) -> f32 {
      %v = tgl.read %x[%k, %j] : !tgl.tensor<[10007, 4], f32>
      tgl.yield %v : f32
    }
    %0 = tgl.for %i = 0 to 10007 reverse iter (%c = %least : f32) {
      %v = tgl.read %x[%i, %j] : !tgl.tensor<[10007, 4], f32>
      %n = arith.maximumf %c, %v : f32
      %q = arith.divf %n, %s : f32
      tgl.write %q, %y[%i, %j] : f32, !tgl.tensor<[10007, 4], f32>
      tgl.yield %n : f32
    }
  }
}

// -----

// Rows that fill the machine stay whole, while their vectors are; odd ones have tiles.
// CHECK-LABEL: tgl.kernel @many
// CHECK-NOT: scan_tile
// CHECK-LABEL: tgl.kernel @odd
// CHECK: scan_tile = array<i64: 1, 16, 8>
tgl.kernel @many(%x: !tgl.tensor<[16, 16384], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[16, 16384], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%r = 0 to 16) {
    %zero = arith.constant 0.0 : f32
    %0 = tgl.for %i = 0 to 16384 iter (%c = %zero : f32) {
      %v = tgl.read %x[%r, %i] : !tgl.tensor<[16, 16384], f32>
      %n = arith.addf %c, %v : f32
      tgl.write %n, %y[%r, %i] : f32, !tgl.tensor<[16, 16384], f32>
      tgl.yield %n : f32
    }
  }
}
tgl.kernel @odd(%x: !tgl.tensor<[16, 16383], f32> {tgl.name = "x", tgl.role = "in"},
                %y: !tgl.tensor<[16, 16383], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%r = 0 to 16) {
    %zero = arith.constant 0.0 : f32
    %0 = tgl.for %i = 0 to 16383 iter (%c = %zero : f32) {
      %v = tgl.read %x[%r, %i] : !tgl.tensor<[16, 16383], f32>
      %n = arith.addf %c, %v : f32
      tgl.write %n, %y[%r, %i] : f32, !tgl.tensor<[16, 16383], f32>
      tgl.yield %n : f32
    }
  }
}

// -----

// Short rows, totals that somebody reads, a loop whose step is more than one addition, and what a later op
// of the statement reads stay.
// CHECK-LABEL: tgl.kernel @short
// CHECK-NOT: scan_tile
tgl.kernel @short(%x: !tgl.tensor<[2, 4096], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[2, 4096], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%r = 0 to 2) {
    %zero = arith.constant 0.0 : f32
    %0 = tgl.for %i = 0 to 4096 iter (%c = %zero : f32) {
      %v = tgl.read %x[%r, %i] : !tgl.tensor<[2, 4096], f32>
      %n = arith.addf %c, %v : f32
      tgl.write %n, %y[%r, %i] : f32, !tgl.tensor<[2, 4096], f32>
      tgl.yield %n : f32
    }
  }
}

// -----

// CHECK-LABEL: tgl.kernel @recurrence
// CHECK-NOT: scan_tile
tgl.kernel @recurrence(%x: !tgl.tensor<[1048576], f32> {tgl.name = "x", tgl.role = "in"},
                       %y: !tgl.tensor<[1048576], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel () {
    %zero = arith.constant 0.0 : f32
    %0 = tgl.for %i = 0 to 1048576 iter (%c = %zero : f32) {
      %v = tgl.read %x[%i] : !tgl.tensor<[1048576], f32>
      %m = arith.mulf %c, %v : f32
      %n = arith.addf %m, %v : f32
      tgl.write %n, %y[%i] : f32, !tgl.tensor<[1048576], f32>
      tgl.yield %n : f32
    }
  }
}

// -----

// CHECK-LABEL: tgl.kernel @read
// CHECK-NOT: scan_tile
tgl.kernel @read(%x: !tgl.tensor<[1048576], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[1048576], f32> {tgl.name = "y", tgl.role = "out"},
                 %z: !tgl.tensor<[1048576], f32> {tgl.name = "z", tgl.role = "out"}) {
  tgl.parallel () {
    %zero = arith.constant 0.0 : f32
    %0 = tgl.for %i = 0 to 1048576 iter (%c = %zero : f32) {
      %v = tgl.read %x[%i] : !tgl.tensor<[1048576], f32>
      %n = arith.addf %c, %v : f32
      tgl.write %n, %y[%i] : f32, !tgl.tensor<[1048576], f32>
      tgl.yield %n : f32
    }
    tgl.parallel (%j = 0 to 1048576) {
      %v = tgl.read %y[%j] : !tgl.tensor<[1048576], f32>
      tgl.write %v, %z[%j] : f32, !tgl.tensor<[1048576], f32>
    }
  }
}

// RUN: tegula-opt %s --tgl-find-last-writers | FileCheck %s
// RUN: tegula-opt %s --tgl-find-last-writers -o %t.mlir
// RUN: tegula-opt %t.mlir | FileCheck %s

// Nothing sets places before: a number counts where its point writes the same row, and its filter is true.
// CHECK-LABEL: tgl.kernel @rows
// CHECK:      tgl.temp "y.last" {{.*}} : !tgl.tensor<[R], i64>
// CHECK-NEXT: tgl.launch
// CHECK-NEXT: tgl.parallel (%i = 0 to M) {
// CHECK:        %[[PLACE:.*]] = arith.index_cast {{.*}} : i32 to index
// CHECK:        %[[KEPT:.*]] = arith.cmpi sgt
// CHECK:        %[[FOUND:.*]] = tgl.read %y.last[%[[PLACE]]] fill %{{.*}} if %[[KEPT]] {unordered}
// CHECK:        %[[IS:.*]] = arith.cmpi ult, %[[FOUND]], %
// CHECK:        %[[NUMBER:.*]] = arith.select %[[IS]], %[[FOUND]], %
// CHECK:        %[[POINT:.*]] = arith.index_cast %[[NUMBER]] : i64 to index
// CHECK:        tgl.read %slot[%[[POINT]]]
// CHECK:        tgl.read %f[%[[POINT]]]
// CHECK:        arith.cmpi eq
// CHECK:        tgl.write max %{{.*}}, %y.last[%[[PLACE]]] replaces %[[FOUND]] unless %{{.*}} if %[[KEPT]] checked "y[slot[i], d]"
// CHECK:      tgl.launch
// CHECK:        tgl.read %y.last
// CHECK-NOT:  tgl.launch
tgl.kernel @rows(%y: !tgl.tensor<[R], f32> {tgl.name = "y", tgl.role = "inout"},
                 %x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"},
                 %f: !tgl.tensor<[M], i32> {tgl.name = "f", tgl.role = "in"},
                 %slot: !tgl.tensor<[M], i32> {tgl.name = "slot", tgl.role = "in"}) sizes [R = 0 : 0, M = 1 : 0] {
  %none = arith.constant -1 : i64
  %zero = arith.constant 0 : i32
  %last = tgl.temp "y.last" {last_writers} : !tgl.tensor<[R], i64>
  tgl.launch "y.last" {
    tgl.parallel (%i = 0 to M) {
      %s = tgl.read %slot[%i] : !tgl.tensor<[M], i32>
      %p = arith.index_cast %s : i32 to index
      %g = tgl.read %f[%i] : !tgl.tensor<[M], i32>
      %c = arith.cmpi sgt, %g, %zero : i32
      tgl.write any %none, %last[%p] if %c checked "y[slot[i], d]" : i64, !tgl.tensor<[R], i64>
    }
  }
  tgl.launch "y.last" {
    tgl.parallel (%i = 0 to M) {
      %n = arith.index_cast %i : index to i64
      %s = tgl.read %slot[%i] : !tgl.tensor<[M], i32>
      %p = arith.index_cast %s : i32 to index
      %g = tgl.read %f[%i] : !tgl.tensor<[M], i32>
      %c = arith.cmpi sgt, %g, %zero : i32
      tgl.write max %n, %last[%p] if %c checked "y[slot[i], d]" : i64, !tgl.tensor<[R], i64>
    }
  }
  tgl.launch "y" {
    tgl.parallel (%i = 0 to M) {
      %n = arith.index_cast %i : index to i64
      %s = tgl.read %slot[%i] : !tgl.tensor<[M], i32>
      %p = arith.index_cast %s : i32 to index
      %g = tgl.read %f[%i] : !tgl.tensor<[M], i32>
      %c = arith.cmpi sgt, %g, %zero : i32
      %l = tgl.read %last[%p] if %c checked "y[slot[i], d]" : !tgl.tensor<[R], i64>
      %is = arith.cmpi eq, %l, %n : i64
      %both = arith.andi %c, %is : i1
      %v = tgl.read %x[%i] : !tgl.tensor<[M], f32>
      tgl.write %v, %y[%p] if %both checked "y[slot[i], d]" : f32, !tgl.tensor<[R], f32>
    }
  }
}

// Points of several axes are found by their number's parts; few enough to have numbers of 32 bits.
// CHECK-LABEL: tgl.kernel @axes
// CHECK:      tgl.temp "y.last" {{.*}} : !tgl.tensor<[50], i32>
// CHECK:      tgl.parallel (%k = 0 to 5, %m = 2 to 22) {
// CHECK:        %[[OWN:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK:        %[[NUMBER:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK:        tgl.read %slot[%[[NUMBER]] floordiv 5 + 2, %[[NUMBER]] - 5*(%[[NUMBER]] floordiv 5)]
// CHECK:        tgl.write max %[[OWN]], %y.last[{{.*}}] replaces
// CHECK:        %[[L:.*]] = tgl.read %y.last[{{.*}}] checked "y[slot[m, k]]" : !tgl.tensor<[50], i32>
// CHECK-NEXT:   arith.extsi %[[L]] : i32 to i64
tgl.kernel @axes(%y: !tgl.tensor<[50], f32> {tgl.name = "y", tgl.role = "inout"},
                 %slot: !tgl.tensor<[22, 5], i32> {tgl.name = "slot", tgl.role = "in"}) {
  %none = arith.constant -1 : i64
  %one = arith.constant 1.0 : f32
  %last = tgl.temp "y.last" {last_writers} : !tgl.tensor<[50], i64>
  tgl.launch "y.last" {
    tgl.parallel (%k = 0 to 5, %m = 2 to 22) {
      %s = tgl.read %slot[%m, %k] : !tgl.tensor<[22, 5], i32>
      %p = arith.index_cast %s : i32 to index
      tgl.write any %none, %last[%p] checked "y[slot[m, k]]" : i64, !tgl.tensor<[50], i64>
    }
  }
  tgl.launch "y.last" {
    tgl.parallel (%k = 0 to 5, %m = 2 to 22) {
      %i = tgl.index (%m - 2)*5 + %k
      %n = arith.index_cast %i : index to i64
      %s = tgl.read %slot[%m, %k] : !tgl.tensor<[22, 5], i32>
      %p = arith.index_cast %s : i32 to index
      tgl.write max %n, %last[%p] checked "y[slot[m, k]]" : i64, !tgl.tensor<[50], i64>
    }
  }
  tgl.launch "y" {
    tgl.parallel (%k = 0 to 5, %m = 2 to 22) {
      %i = tgl.index (%m - 2)*5 + %k
      %n = arith.index_cast %i : index to i64
      %s = tgl.read %slot[%m, %k] : !tgl.tensor<[22, 5], i32>
      %p = arith.index_cast %s : i32 to index
      %l = tgl.read %last[%p] checked "y[slot[m, k]]" : !tgl.tensor<[50], i64>
      %is = arith.cmpi eq, %l, %n : i64
      tgl.write %one, %y[%p] if %is checked "y[slot[m, k]]" : f32, !tgl.tensor<[50], f32>
    }
  }
}

// Many points for each element: they meet in copies of the table.
// CHECK-LABEL: tgl.kernel @few
// CHECK-COUNT-3: tgl.launch
tgl.kernel @few(%y: !tgl.tensor<[10], f32> {tgl.name = "y", tgl.role = "inout"},
                %slot: !tgl.tensor<[1000], i32> {tgl.name = "slot", tgl.role = "in"}) {
  %none = arith.constant -1 : i64
  %one = arith.constant 1.0 : f32
  %last = tgl.temp "y.last" {last_writers} : !tgl.tensor<[10], i64>
  tgl.launch "y.last" {
    tgl.parallel (%i = 0 to 1000) {
      %s = tgl.read %slot[%i] : !tgl.tensor<[1000], i32>
      %p = arith.index_cast %s : i32 to index
      tgl.write any %none, %last[%p] checked "y[slot[i]]" : i64, !tgl.tensor<[10], i64>
    }
  }
  tgl.launch "y.last" {
    tgl.parallel (%i = 0 to 1000) {
      %n = arith.index_cast %i : index to i64
      %s = tgl.read %slot[%i] : !tgl.tensor<[1000], i32>
      %p = arith.index_cast %s : i32 to index
      tgl.write max %n, %last[%p] checked "y[slot[i]]" : i64, !tgl.tensor<[10], i64>
    }
  }
  tgl.launch "y" {
    tgl.parallel (%i = 0 to 1000) {
      %n = arith.index_cast %i : index to i64
      %s = tgl.read %slot[%i] : !tgl.tensor<[1000], i32>
      %p = arith.index_cast %s : i32 to index
      %l = tgl.read %last[%p] checked "y[slot[i]]" : !tgl.tensor<[10], i64>
      %is = arith.cmpi eq, %l, %n : i64
      tgl.write %one, %y[%p] if %is checked "y[slot[i]]" : f32, !tgl.tensor<[10], f32>
    }
  }
}

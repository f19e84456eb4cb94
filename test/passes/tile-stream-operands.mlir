// RUN: tegula-opt %S/form-skinny-products.mlir --pass-pipeline='builtin.module(tgl.kernel(tgl-form-tiles,tile-stream-operands))' \
// RUN:   -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tegula-opt %t.mlir --pass-pipeline='builtin.module(tgl.kernel(tile-assign-layouts,tile-allocate-shared))' \
// RUN:   | FileCheck %s --check-prefix=SHARED

// Eight warps have slices of the sum. Packed words and rows come in vectors, a group's scale alone; the loop carries them, and loads
// those of its next turn. The operands take what is loaded; nothing of them is in shared memory.
// CHECK: tile.kernel "y" (%t = 0 to 3) attributes {threads = 256 : i64} {
// CHECK-NEXT: %[[X:.*]] = tile.alloc : !tile.scratch<8x8x16xf32>
// CHECK-NEXT: %[[N:.*]] = tile.span 16*%t to 40
// CHECK-NEXT: %[[M:.*]] = tile.span 0 to 6
// CHECK-NEXT: %[[ZERO:.*]] = tile.zero : !tile.tile<16x8xf32, #tile.mma<1x1x8>>
// CHECK: %[[Q:.*]] = tile.span 0 to 160 : !tile.span<128>
// CHECK-NEXT: %[[P0:.*]] = tile.vectors (%j in %[[N]], %[[I:.*]] in %[[Q]]) -> !tile.tile<16x128xui8, #tile.mma<1x1x8>> {
// CHECK-NEXT: tgl.read %w[%j, %[[I]]]
// CHECK: %[[G:.*]] = tile.span 0 to 10 : !tile.span<8>
// CHECK-NEXT: %[[S0:.*]] = tile.vectors (%j in %[[N]], %[[I:.*]] in %[[G]]) -> !tile.tile<16x8xbf16, #tile.mma<1x1x8>> {
// CHECK: %[[A0:.*]] = tile.vectors {{.*}} -> !tile.tile<8x256xbf16, #tile.mma<1x1x8>> {
// CHECK: %[[LOOP:.*]]:4 = tile.for %[[K:.*]] = 0 to 320 step 256 iter (%[[C:.*]] = %[[ZERO]] : {{.*}}, %[[P:.*]] = %[[P0]] : {{.*}}, %[[S:.*]] = %[[S0]] : {{.*}}, %[[A:.*]] = %[[A0]] : {{.*}}) {
// CHECK: %[[Q1:.*]] = tile.span %[[K]] floordiv 2 + 128 to 160
// CHECK-NEXT: %[[P1:.*]] = tile.vectors (%j in %[[N]], {{.*}} in %[[Q1]])
// CHECK: %[[S1:.*]] = tile.vectors
// CHECK: %[[A1:.*]] = tile.vectors
// CHECK: %[[W:.*]] = tile.operand (%j in %[[N]], %k in %{{.*}}) (%[[WORD:.*]] = %[[P]] : {{.*}}, %[[SCALE:.*]] = %[[S]] : {{.*}}) -> !tile.tile<16x256xbf16, #tile.mma<1x1x8>> {
// CHECK-NEXT: arith.extsi %[[WORD]]
// CHECK: arith.mulf %{{.*}}, %[[SCALE]]
// CHECK: %[[R:.*]] = tile.operand {{.*}} = %[[A]] : {{.*}} -> !tile.tile<8x256xbf16, #tile.mma<1x1x8>> {
// CHECK: %[[NEXT:.*]] = tile.mma %[[W]], %[[R]], %[[C]]
// CHECK-NEXT: tile.yield %[[NEXT]], %[[P1]], %[[S1]], %[[A1]]
// CHECK: %[[ALL:.*]] = tile.sum_warps %[[LOOP]]#0 in %[[X]] : {{.*}} -> !tile.tile<16x8xf32, #tile.linear<256>>
// CHECK: tile.store (%j in %[[N]], %row in %[[M]]) (%{{.*}} = %[[ALL]] : !tile.tile<16x8xf32, #tile.linear<256>>) {

// Scratch has its place as other shared memory.
// SHARED: tile.kernel "y" (%t = 0 to 3) attributes {shared_bytes = 4096 : i64, threads = 256 : i64} {
// SHARED-NEXT: tile.alloc at 0 : !tile.scratch<8x8x16xf32>

// A product whose operands are read as they are stays for shared memory.
// RUN: tegula-opt %S/form-tiles.mlir --pass-pipeline='builtin.module(tgl.kernel(tgl-form-tiles,tile-stream-operands))' \
// RUN:   | FileCheck %s --check-prefix=PLAIN
// PLAIN-NOT: tile.vectors
// PLAIN: tile.dot

; What is under way is used by what waits for it alone, and waited for once it is committed.
; RUN: not tegula-device-opt %s 2>&1 | FileCheck %s

declare i32 @tegula.cp.async.commit()
declare void @tegula.cp.async.await(i32)
declare void @llvm.nvvm.wgmma.commit_group.sync.aligned()
declare { float, float } @tegula.wgmma.read.f32.2(float, float)

; CHECK: early: {{.*}}fadd float %a, 1.0{{.*}} uses what is under way
define float @early() {
  %p = call { float, float } asm sideeffect "wgmma.mma_async.sync.aligned {$0, $1};", "=f,=f"()
  %a = extractvalue { float, float } %p, 0
  %sum = fadd float %a, 1.0
  ret float %sum
}

; CHECK-NEXT: around: {{.*}}fmul float %sum, 2.0{{.*}} uses what is under way
define void @around(i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %j, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %next, %loop ]
  %twice = fmul float %sum, 2.0
  %p = call { float, float } asm sideeffect "wgmma.mma_async.sync.aligned {$0, $1};", "=f,=f,0,1"(float %sum, float %sum)
  %next = extractvalue { float, float } %p, 0
  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()
  %j = add i32 %i, 1
  %more = icmp slt i32 %j, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; On one of two ways the group is still open.
; CHECK-NEXT: open: {{.*}}@tegula.wgmma.read.f32.2(float %a, float %a) waits for a product before it is committed
define float @open(i1 %c) {
entry:
  %p = call { float, float } asm sideeffect "wgmma.mma_async.sync.aligned {$0, $1};", "=f,=f"()
  %a = extractvalue { float, float } %p, 0
  br i1 %c, label %commit, label %wait
commit:
  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()
  br label %wait
wait:
  %r = call { float, float } @tegula.wgmma.read.f32.2(float %a, float %a)
  %x = extractvalue { float, float } %r, 0
  ret float %x
}

; CHECK-NEXT: number: {{.*}}add i32 %c, 1 uses what is under way
define i32 @number() {
  %c = call i32 @tegula.cp.async.commit()
  %sum = add i32 %c, 1
  ret i32 %sum
}

declare i32 @tegula.ring(i32, i32, i32, i32, i32, i1)
declare i32 @tegula.ring.counted(i32, i32, i32, i32, ptr addrspace(3))
declare void @tegula.ring.commit(i32, i32)
declare void @tegula.ring.wait(i32, i32, i32)

; CHECK-NEXT: both: {{.*}}@tegula.ring.wait{{.*}} can be reached from where the same ring's other side is
define void @both() {
  %r = call i32 @tegula.ring(i32 1, i32 2, i32 1, i32 32, i32 32, i1 false)
  call void @tegula.ring.commit(i32 %r, i32 0)
  call void @tegula.ring.wait(i32 %r, i32 0, i32 0)
  ret void
}

; Barriers 1 to 4 and 4 to 9; the first two are one ring after another.
; CHECK-NEXT: shared: %q = {{.*}} has barriers of another ring
; CHECK-NEXT: shared: %q = {{.*}} has barriers of another ring
define void @shared() {
  %r = call i32 @tegula.ring(i32 1, i32 2, i32 1, i32 32, i32 32, i1 false)
  %s = call i32 @tegula.ring(i32 1, i32 2, i32 1, i32 32, i32 32, i1 true)
  %q = call i32 @tegula.ring(i32 4, i32 2, i32 2, i32 32, i32 64, i1 false)
  ret void
}

; CHECK-NEXT: many: %r = {{.*}} needs barriers that there are not
define void @many() {
  %r = call i32 @tegula.ring(i32 1, i32 8, i32 1, i32 32, i32 32, i1 false)
  ret void
}

; CHECK-NEXT: unknown: %r = {{.*}} is not made of constants
; CHECK-NEXT: unknown: {{.*}}@tegula.ring.commit(i32 %n, i32 0) is of no ring that the function makes
define void @unknown(i32 %n) {
  %r = call i32 @tegula.ring(i32 1, i32 %n, i32 1, i32 32, i32 32, i1 false)
  call void @tegula.ring.commit(i32 %n, i32 0)
  ret void
}

; CHECK-NEXT: untold: {{.*}}@tegula.ring.commit{{.*}} needs barriers that nobody waits at
define void @untold() {
  %r = call i32 @tegula.ring(i32 1, i32 2, i32 0, i32 32, i32 32, i1 false)
  call void @tegula.ring.commit(i32 %r, i32 0)
  ret void
}

declare void @tegula.ring.leave(i32, i32)

; CHECK-NEXT: uncounted: {{.*}}@tegula.ring.leave{{.*}} needs barriers that count bytes
define void @uncounted() {
  %r = call i32 @tegula.ring(i32 1, i32 2, i32 1, i32 32, i32 32, i1 false)
  call void @tegula.ring.leave(i32 %r, i32 0)
  ret void
}

; Who leaves a stage to users is none of them.
; CHECK-NEXT: itself: {{.*}}@tegula.ring.wait{{.*}} can be reached from where the same ring's other side is
define void @itself(ptr addrspace(3) %barriers) {
  %r = call i32 @tegula.ring.counted(i32 1, i32 2, i32 32, i32 32, ptr addrspace(3) %barriers)
  call void @tegula.ring.leave(i32 %r, i32 0)
  call void @tegula.ring.wait(i32 %r, i32 0, i32 0)
  ret void
}

; What is under way is used by what waits for it alone, and waited for once it is committed.
; RUN: not tegula-device-opt --passes=verify-async %s 2>&1 | FileCheck %s

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

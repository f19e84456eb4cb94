# check: M=1, ...=(1,), N=1
# check: M=5, ...=(7,), N=41
# check: M=70, ...=(2, 3), N=9
# check: M=5, ...=(7,), N=41, T=bf16
# check: M=5, ...=(7,), N=41, T=f64
# input: index = integers(0, M)
def t_index_add(x, index, source):
    wide = x.dtype if x.element_size() == 8 else x.float().dtype
    return x.to(wide).index_add(0, index, source.to(wide)).to(x.dtype)

# check: M=5, N=41
# input: index = integers(0, M)
def t_index_add_integers(x, index, source):
    return x.index_add(0, index, source)

# check: M=1, ...=(1,), N=1
# check: M=5, ...=(7,), N=41
# check: M=70, ...=(2, 3), N=9, T=f16
# input: index = integers(0, M)
def t_index_copy(x, index, source):
    y = x.clone()
    for n in range(index.size(0)):
        y[int(index[n])] = source[n]
    return y

# check: A=2, B=3, C=4, D=5, N=1
# check: A=3, B=5, C=3, D=7, N=29
# check: A=3, B=5, C=3, D=7, N=29, T=f16
# input: index = integers(0, 2)
def t_index_add_dims(x, index, s0, s1, s2, s3):
    t = x.dtype if x.element_size() == 8 else x.float().dtype
    wide = x.to(t)
    return (wide.index_add(0, index, s0.to(t), alpha=0.5).to(x.dtype), wide.index_add(1, index, s1.to(t)).to(x.dtype),
            wide.index_add(2, index, s2.to(t), alpha=2).to(x.dtype), wide.index_add(3, index, s3.to(t), alpha=-1).to(x.dtype))

# check: M=5, K=7, N=41
# input: index = integers(0, K)
def t_index_add_alpha(x, index, source):
    return x.index_add(1, index, source, alpha=3)

# check: A=2, B=3, C=4, N=1
# check: A=3, B=5, C=6, N=29, T=bf16
# input: index = integers(0, 3)
def t_index_copy_dims(x, index, s1, s2):
    y1, y2 = x.clone(), x.clone()
    for n in range(index.size(0)):
        y1[:, int(index[n])] = s1[:, n]
        y2[:, :, int(index[n])] = s2[:, :, n]
    return y1, y2

# check: M=1, K=1, N=1, J=1, S=1
# check: M=5, K=7, N=4, J=9, S=6
# check: M=5, K=7, N=40, J=90, S=40, T=f16
# input: rows = integers(0, M)
# input: columns = integers(0, K)
def t_scatter(x, rows, columns, u, v):
    a, b = x.clone(), x.clone()
    for n in range(rows.size(0)):
        for k in range(x.size(1)):
            a[int(rows[n, k]), k] = u[n, k]
    for m in range(x.size(0)):
        for j in range(columns.size(1)):
            b[m, int(columns[m, j])] = v[m, j]
    t = x.dtype if x.element_size() == 8 else x.float().dtype
    wide = x.to(t)
    return a, b, wide.scatter_add(0, rows, u.to(t)).to(x.dtype), wide.scatter_add(1, columns, v.to(t)).to(x.dtype)

# check: N=1, C=1, P=1
# check: N=2, C=3, P=7
# input: indices = integers(0, 2*P)
def t_max_unpool1d(x, indices):
    y = x.new_zeros([x.size(0), x.size(1), 2 * x.size(2)])
    for n in range(x.size(0)):
        for c in range(x.size(1)):
            for p in range(x.size(2)):
                y[n, c, int(indices[n, c, p])] = x[n, c, p]
    return y

# check: N=1, C=1, P=1, Q=1
# check: N=2, C=3, P=4, Q=5
# input: indices = integers(0, (3*P - 2)*(2*Q - 1))
def t_max_unpool2d(x, indices):
    y = x.new_zeros([x.size(0), x.size(1), (3 * x.size(2) - 2) * (2 * x.size(3) - 1)])
    for n in range(x.size(0)):
        for c in range(x.size(1)):
            for p in range(x.size(2)):
                for q in range(x.size(3)):
                    y[n, c, int(indices[n, c, p, q])] = x[n, c, p, q]
    return y.view(x.size(0), x.size(1), 3 * x.size(2) - 2, 2 * x.size(3) - 1)

# check: N=1, A=1, P=1, Q=1
# check: N=2, A=2, P=3, Q=2
# input: indices = integers(0, 8*A*P*Q)
def t_max_unpool3d(x, indices):
    y = x.new_zeros([x.size(0), 8 * x.size(1) * x.size(2) * x.size(3)])
    for n in range(x.size(0)):
        for a in range(x.size(1)):
            for p in range(x.size(2)):
                for q in range(x.size(3)):
                    y[n, int(indices[n, a, p, q])] = x[n, a, p, q]
    return y.view(x.size(0), 2 * x.size(1), 2 * x.size(2), 2 * x.size(3))

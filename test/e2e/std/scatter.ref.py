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

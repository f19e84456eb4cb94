# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# bench: A=64, B=16, I=128, H=128
# input: w_hh = normal(0, 0.1)
def t_rnn(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.rnn_tanh(x, h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, False)
    return y, hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# input: w_hh = normal(0, 0.1)
def t_rnn_reverse(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.rnn_tanh(torch.flip(x, [0]), h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, False)
    return torch.flip(y, [0]), hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# bench: A=16, B=64, I=128, H=128
# input: w_hh = normal(0, 0.1)
def t_rnn_batch_first(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.rnn_tanh(x, h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, True)
    return y, hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# input: w_hh = normal(0, 0.1)
def t_rnn_batch_first_reverse(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.rnn_tanh(torch.flip(x, [1]), h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, True)
    return torch.flip(y, [1]), hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# bench: A=64, B=16, I=128, H=128
# input: w_hh = normal(0, 0.1)
def t_rnn_tanh(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.rnn_tanh(x, h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, False)
    return y, hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# input: w_hh = normal(0, 0.1)
def t_rnn_tanh_reverse(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.rnn_tanh(torch.flip(x, [0]), h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, False)
    return torch.flip(y, [0]), hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# bench: A=16, B=64, I=128, H=128
# input: w_hh = normal(0, 0.1)
def t_rnn_tanh_batch_first(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.rnn_tanh(x, h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, True)
    return y, hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# input: w_hh = normal(0, 0.1)
def t_rnn_tanh_batch_first_reverse(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.rnn_tanh(torch.flip(x, [1]), h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, True)
    return torch.flip(y, [1]), hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# bench: A=64, B=16, I=128, H=128
# input: w_hh = normal(0, 0.1)
def t_rnn_relu(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.rnn_relu(x, h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, False)
    return y, hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# input: w_hh = normal(0, 0.1)
def t_rnn_relu_reverse(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.rnn_relu(torch.flip(x, [0]), h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, False)
    return torch.flip(y, [0]), hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# bench: A=16, B=64, I=128, H=128
# input: w_hh = normal(0, 0.1)
def t_rnn_relu_batch_first(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.rnn_relu(x, h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, True)
    return y, hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# input: w_hh = normal(0, 0.1)
def t_rnn_relu_batch_first_reverse(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.rnn_relu(torch.flip(x, [1]), h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, True)
    return torch.flip(y, [1]), hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# bench: A=64, B=16, I=128, H=128
# input: w_hh = normal(0, 0.1)
def t_gru(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.gru(x, h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, False)
    return y, hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# input: w_hh = normal(0, 0.1)
def t_gru_reverse(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.gru(torch.flip(x, [0]), h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, False)
    return torch.flip(y, [0]), hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# bench: A=16, B=64, I=128, H=128
# input: w_hh = normal(0, 0.1)
def t_gru_batch_first(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.gru(x, h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, True)
    return y, hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# input: w_hh = normal(0, 0.1)
def t_gru_batch_first_reverse(x, h0, w_ih, w_hh, b_ih, b_hh):
    y, hn = torch.gru(torch.flip(x, [1]), h0[None], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, True)
    return torch.flip(y, [1]), hn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# bench: A=64, B=16, I=128, H=128
# input: w_hh = normal(0, 0.1)
def t_lstm(x, h0, c0, w_ih, w_hh, b_ih, b_hh):
    y, hn, cn = torch.lstm(x, [h0[None], c0[None]], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, False)
    return y, hn[0], cn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# input: w_hh = normal(0, 0.1)
def t_lstm_reverse(x, h0, c0, w_ih, w_hh, b_ih, b_hh):
    y, hn, cn = torch.lstm(torch.flip(x, [0]), [h0[None], c0[None]], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, False)
    return torch.flip(y, [0]), hn[0], cn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# bench: A=16, B=64, I=128, H=128
# input: w_hh = normal(0, 0.1)
def t_lstm_batch_first(x, h0, c0, w_ih, w_hh, b_ih, b_hh):
    y, hn, cn = torch.lstm(x, [h0[None], c0[None]], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, True)
    return y, hn[0], cn[0]

# check: A=1, B=1, I=1, H=1
# check: A=5, B=3, I=7, H=4
# input: w_hh = normal(0, 0.1)
def t_lstm_batch_first_reverse(x, h0, c0, w_ih, w_hh, b_ih, b_hh):
    y, hn, cn = torch.lstm(torch.flip(x, [1]), [h0[None], c0[None]], [w_ih, w_hh, b_ih, b_hh], True, 1, 0.0, False, False, True)
    return torch.flip(y, [1]), hn[0], cn[0]

# check: B=1, I=1, H=1
# check: B=3, I=7, H=5
# bench: B=64, I=256, H=256
# input: w_hh = normal(0, 0.1)
def t_rnn_tanh_cell(x, h0, w_ih, w_hh, b_ih, b_hh):
    return torch.rnn_tanh_cell(x, h0, w_ih, w_hh, b_ih, b_hh)

# check: B=1, I=1, H=1
# check: B=3, I=7, H=5
# bench: B=64, I=256, H=256
# input: w_hh = normal(0, 0.1)
def t_rnn_relu_cell(x, h0, w_ih, w_hh, b_ih, b_hh):
    return torch.rnn_relu_cell(x, h0, w_ih, w_hh, b_ih, b_hh)

# check: B=1, I=1, H=1
# check: B=3, I=7, H=5
# bench: B=64, I=256, H=256
# input: w_hh = normal(0, 0.1)
def t_gru_cell(x, h0, w_ih, w_hh, b_ih, b_hh):
    return torch.gru_cell(x, h0, w_ih, w_hh, b_ih, b_hh)

# check: B=1, I=1, H=1
# check: B=3, I=7, H=5
# bench: B=64, I=256, H=256
# input: w_hh = normal(0, 0.1)
def t_lstm_cell(x, h0, c0, w_ih, w_hh, b_ih, b_hh):
    return torch.lstm_cell(x, [h0, c0], w_ih, w_hh, b_ih, b_hh)

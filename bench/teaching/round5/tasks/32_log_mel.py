import math

import torch
import torch.nn as nn


def hz_to_mel(hz):
    return 2595.0 * math.log10(1.0 + hz / 700.0)


def mel_filters(sample_rate, n_fft, n_mels):
    """Triangles, (n_fft // 2 + 1, n_mels)."""
    freqs = torch.linspace(0.0, sample_rate / 2, n_fft // 2 + 1)
    mels = torch.linspace(0.0, hz_to_mel(sample_rate / 2), n_mels + 2)
    edges = 700.0 * (10.0 ** (mels / 2595.0) - 1.0)
    rise = (freqs[:, None] - edges[None, :-2]) / (edges[1:-1] - edges[:-2])
    fall = (edges[None, 2:] - freqs[:, None]) / (edges[2:] - edges[1:-1])
    return torch.minimum(rise, fall).clamp(min=0.0)


class Model(nn.Module):
    """Log-mel spectrogram: frames, Hann window, DFT as two matrix products, mel filters, logarithm with a floor."""

    def __init__(self, sample_rate, n_fft, hop_length, n_mels):
        super().__init__()
        self.n_fft = n_fft
        self.hop_length = hop_length
        n = torch.arange(n_fft, dtype=torch.float64)
        k = torch.arange(n_fft // 2 + 1, dtype=torch.float64)
        phase = 2 * math.pi / n_fft * torch.remainder(torch.outer(n, k), n_fft)
        window = 0.5 - 0.5 * torch.cos(2 * math.pi * n / n_fft)
        dtype = torch.get_default_dtype()
        self.register_buffer("dft_cos", (window[:, None] * phase.cos()).to(dtype))
        self.register_buffer("dft_sin", (window[:, None] * -phase.sin()).to(dtype))
        self.register_buffer("mel_fb", mel_filters(sample_rate, n_fft, n_mels))

    def forward(self, wave):
        # (B, samples) -> (B, n_mels, frames)
        frames = wave.unfold(-1, self.n_fft, self.hop_length)
        power = (frames @ self.dft_cos) ** 2 + (frames @ self.dft_sin) ** 2
        mel = (power @ self.mel_fb).transpose(1, 2)
        return torch.log10(mel.clamp(min=1e-5))


batch_size = 2
num_samples = 1600
n_fft = 128
hop_length = 48
n_mels = 20


def get_inputs():
    return [torch.randn(batch_size, num_samples)]


def get_init_inputs():
    return [8000, n_fft, hop_length, n_mels]

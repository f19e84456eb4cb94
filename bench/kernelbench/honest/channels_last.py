# Images and their weights with channels innermost; what is returned lies so too.
FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


class ModelNew(Model):
    def forward(self, *inputs):
        for one in self.parameters():
            if one.dim() in FORMATS:
                one.data = one.data.contiguous(memory_format=FORMATS[one.dim()])
        return super().forward(*(
            one.contiguous(memory_format=FORMATS[one.dim()])
            if isinstance(one, torch.Tensor) and one.dim() in FORMATS else one for one in inputs))

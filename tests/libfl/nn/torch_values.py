"""Compares a network of libfl/nn with PyTorch's: torch_values.py BENCH FILE INPUT BATCH LAYER…

FILE has float32 numbers as test_nn_torch.c writes them: the parameters in exported order, the batch, its labels, the
mean loss, and the gradient in exported order. Of a network that ends with a loss of values the labels are [batch][values]. Exit status 0: equal to 1e-5; 77: there is no PyTorch here.
"""
import array
import sys

try:
    import torch
except ImportError:
    sys.exit(77)
sys.path.insert(0, sys.argv[1])
import train_torch  # noqa: E402

LOSSES = {"mse": torch.nn.functional.mse_loss, "mae": torch.nn.functional.l1_loss,
          "bce": torch.nn.functional.binary_cross_entropy_with_logits}
BUFFERS = ("running_mean", "running_var")
TOLERANCE = 1e-5


def tensors_of(net):
    """Parameters and buffers in exported order: layer by layer, a convolution's before its norm's."""
    for layer in net.layers:
        yield from ((t, True) for t in layer.parameters() if t.requires_grad)
        yield from ((getattr(layer, name), False) for name in BUFFERS if hasattr(layer, name))


def main():
    shape, batch = tuple(map(int, sys.argv[3].split(","))), int(sys.argv[4])
    layers = sys.argv[5:]
    values = LOSSES.get(layers[-1])
    net = train_torch.Network(shape, layers[:-1] if values else layers).double()
    numbers = array.array("f")
    with open(sys.argv[2], "rb") as file:
        numbers.frombytes(file.read())
    numbers = torch.tensor(numbers, dtype=torch.float64)
    at = 0

    def take(count):
        nonlocal at
        at += count
        return numbers[at - count : at]

    with torch.no_grad():
        for tensor, _ in tensors_of(net):
            tensor.copy_(take(tensor.numel()).reshape(tensor.shape))
    x = take(batch * torch.Size(shape).numel()).reshape(batch, *shape)
    if values:
        out = net(x)
        loss = values(out, take(out.numel()).reshape(out.shape))
    else:
        loss = torch.nn.functional.cross_entropy(net(x), take(batch).long())
    loss.backward()
    bad = abs(loss.item() - take(1).item()) > TOLERANCE * (1 + abs(loss.item()))
    worst = 0.0
    for tensor, trained in tensors_of(net):
        have = take(tensor.numel())
        if trained:
            want = tensor.grad.reshape(-1)
            worst = max(worst, ((have - want).abs() / (1 + want.abs())).max().item())
    if at != len(numbers) or bad or worst > TOLERANCE:
        sys.exit(f"{len(numbers)} numbers, {at} read; loss {loss.item()}; gradients differ by up to {worst}")


main()

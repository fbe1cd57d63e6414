"""Train a PyTorch network on minibatches by `CFAdamW`, and minimise a valley by `CFGD`."""

import torch
from sklearn.datasets import load_digits

from cfgd.integrations.torch import CFGD, CFAdamW

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
images, labels = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
train, test = torch.randperm(len(images)).split([1400, 397])

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 10))
optimizer = CFAdamW(model.parameters(), lr=1e-2, gamma=-1.0, every=10)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
for _ in range(10):
    for batch in train[torch.randperm(len(train))].split(64):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images[batch]), labels[batch])
        optimizer.observe(loss)  # the line that is new: curvature, every tenth time
        loss.backward()
        optimizer.step()
    scheduler.step()
accuracy = (model(images[test]).argmax(1) == labels[test]).double().mean()
print(f"CFAdamW on the digits: loss {loss.item():.3f}, test accuracy {accuracy:.3f}")

# x'Ax/2 with a condition number of 1e4: the best constants of a memory of one step
eigenvalues = torch.logspace(-4, 0, 30, dtype=torch.float64)
turn = torch.linalg.qr(torch.randn(30, 30, dtype=torch.float64)).Q
A = turn @ torch.diag(eigenvalues) @ turn.T
S = A.diagonal().rsqrt()
A = S[:, None] * A * S  # unit diagonal
low, high = torch.linalg.eigvalsh(A)[[0, -1]].sqrt().tolist()
for name, lr, gamma in (
    ("gradient descent", 2 / (high**2 + low**2), 0.0),
    ("CFGD", 4 / (high + low) ** 2, -(((high - low) / 2) ** 2)),
):
    x = torch.nn.Parameter(torch.ones(30, dtype=torch.float64))
    optimizer = CFGD([x], lr=lr, gamma=gamma, curvature=1.0)  # known: nothing to observe
    for _ in range(1000):
        optimizer.zero_grad()
        loss = x @ A @ x / 2
        loss.backward()
        optimizer.step()
    print(f"{name} after 1000 steps: {loss.item():.1e}")

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """PPO on a rollout of several environments: GAE, normalised advantages, clipped objective, value loss, entropy."""

    def __init__(self, gamma, gae_lambda, clip_eps):
        super().__init__()
        self.gamma = gamma
        self.gae_lambda = gae_lambda
        self.clip_eps = clip_eps

    def compute_gae(self, rewards, values, dones):
        # rewards, dones: (T, N), values: (T + 1, N)
        advantages = torch.zeros_like(rewards)
        last = torch.zeros_like(rewards[0])
        for t in reversed(range(rewards.shape[0])):
            not_done = 1.0 - dones[t]
            delta = rewards[t] + self.gamma * values[t + 1] * not_done - values[t]
            last = delta + self.gamma * self.gae_lambda * not_done * last
            advantages[t] = last
        return advantages, advantages + values[:-1]

    def forward(self, logits, new_values, actions, old_log_probs, rewards, values, dones):
        advantages, returns = self.compute_gae(rewards, values, dones)
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)

        log_pi = F.log_softmax(logits, dim=-1)
        log_probs = log_pi.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        ratio = torch.exp((log_probs - old_log_probs).clamp(-10.0, 10.0))
        clipped = ratio.clamp(1.0 - self.clip_eps, 1.0 + self.clip_eps)
        policy_loss = -torch.min(ratio * advantages, clipped * advantages).mean()

        value_loss = 0.5 * (new_values - returns).pow(2).mean()
        entropy = -(log_pi.exp() * log_pi).sum(dim=-1).mean()
        return policy_loss, value_loss, entropy


num_steps = 16
num_envs = 8
num_actions = 6


def get_inputs():
    return [
        torch.randn(num_steps, num_envs, num_actions),
        torch.randn(num_steps, num_envs),
        torch.randint(0, num_actions, (num_steps, num_envs)),
        -1.5 - 0.5 * torch.rand(num_steps, num_envs),
        torch.randn(num_steps, num_envs),
        torch.randn(num_steps + 1, num_envs),
        (torch.rand(num_steps, num_envs) < 0.1).float(),
    ]


def get_init_inputs():
    return [0.99, 0.95, 0.2]

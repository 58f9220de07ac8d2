"""Computes again, in PyTorch and in double precision, what dump_gradients wrote.

usage: compare_with_torch.py PATH_OF_dump_gradients

Both families are written down here a second time from their definitions, with autograd for the
gradients and torch.optim for the update, and nothing is shared with the program under test but the
file of numbers. Limits: 1e-5 of a tensor's largest value for gradients, logits and losses; an
AdamW update to 1e-4 of its largest movement; 20 losses of a training run to 1e-4 of each.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy
import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
GRADIENT_LIMIT = 1e-5
UPDATE_LIMIT = 1e-4
TRAJECTORY_LIMIT = 1e-4


def read_safetensors(path):
    with open(path, "rb") as f:
        raw = f.read()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + length])
    metadata = header.pop("__metadata__")
    types = {"F32": "<f4", "F64": "<f8", "I32": "<i4"}
    tensors = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        values = numpy.frombuffer(raw[8 + length + begin:8 + length + end], types[t["dtype"]])
        values = values.reshape(t["shape"])
        wide = numpy.int64 if t["dtype"] == "I32" else numpy.float64
        tensors[name] = torch.from_numpy(values.astype(wide))
    return tensors, metadata


class Settings:
    """The metadata, each value as the number it is."""

    def __init__(self, metadata):
        self.family = metadata["family"]
        self.decay_shape = metadata["decay_shape"]
        for name in "vocabulary width inner layers heads kv_heads head_dim positions".split():
            setattr(self, name, int(metadata[name]))
        for name in "warmup_steps total_steps tied bias".split():
            setattr(self, name, int(metadata[name]))
        for name in ("norm_epsilon rope_theta max_norm lr min_factor beta1 beta2 epsilon "
                     "weight_decay single_update_epsilon single_update_rate").split():
            setattr(self, name, float(metadata[name]))
        self.decay_ratio = float(metadata["decay_ratio"]) if metadata["decay_ratio"] else None
        scaling = metadata.get("rope_scaling")
        self.rope_scaling = [float(x) for x in scaling.split()] if scaling else None


def expected_shapes(s):
    c, f, v = s.width, s.inner, s.vocabulary
    q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
    shapes = {}

    def both(name, weight, bias):
        shapes[name + ".weight"] = weight
        if s.bias:
            shapes[name + ".bias"] = bias

    if s.family == "gpt2":
        shapes["transformer.wte.weight"] = (v, c)
        shapes["transformer.wpe.weight"] = (s.positions, c)
        for i in range(s.layers):
            at = f"transformer.h.{i}."
            both(at + "ln_1", (c,), (c,))
            both(at + "attn.c_attn", (3 * c, c), (3 * c,))
            both(at + "attn.c_proj", (c, c), (c,))
            both(at + "ln_2", (c,), (c,))
            both(at + "mlp.c_fc", (f, c), (f,))
            both(at + "mlp.c_proj", (c, f), (c,))
        both("transformer.ln_f", (c,), (c,))
    else:
        shapes["model.embed_tokens.weight"] = (v, c)
        for i in range(s.layers):
            at = f"model.layers.{i}."
            shapes[at + "self_attn.q_proj.weight"] = (q, c)
            shapes[at + "self_attn.k_proj.weight"] = (kv, c)
            shapes[at + "self_attn.v_proj.weight"] = (kv, c)
            shapes[at + "self_attn.o_proj.weight"] = (c, q)
            shapes[at + "mlp.gate_proj.weight"] = (f, c)
            shapes[at + "mlp.up_proj.weight"] = (f, c)
            shapes[at + "mlp.down_proj.weight"] = (c, f)
            shapes[at + "input_layernorm.weight"] = (c,)
            shapes[at + "post_attention_layernorm.weight"] = (c,)
        shapes["model.norm.weight"] = (c,)
    if not s.tied:
        shapes["lm_head.weight"] = (v, c)
    return shapes


def attend(q, k, v):
    """[B, heads, T, D] each; causal."""
    t = q.shape[2]
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    future = torch.ones(t, t, dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(future, -math.inf), -1) @ v


def split_heads(x, heads):
    b, t, _ = x.shape
    return x.view(b, t, heads, -1).transpose(1, 2)


def join_heads(x):
    b, h, t, d = x.shape
    return x.transpose(1, 2).reshape(b, t, h * d)


def gpt2_logits(s, p, tokens):
    def linear(x, name):
        return torch.nn.functional.linear(x, p[name + ".weight"], p.get(name + ".bias"))

    def norm(x, name):
        return torch.nn.functional.layer_norm(
            x, (s.width,), p[name + ".weight"], p.get(name + ".bias"), s.norm_epsilon)

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))

    x = p["transformer.wte.weight"][tokens] + p["transformer.wpe.weight"][:tokens.shape[1]]
    for i in range(s.layers):
        at = f"transformer.h.{i}."
        q, k, v = linear(norm(x, at + "ln_1"), at + "attn.c_attn").split(s.width, -1)
        a = attend(split_heads(q, s.heads), split_heads(k, s.heads), split_heads(v, s.heads))
        x = x + linear(join_heads(a), at + "attn.c_proj")
        x = x + linear(gelu(linear(norm(x, at + "ln_2"), at + "mlp.c_fc")), at + "mlp.c_proj")
    head = p["transformer.wte.weight"] if s.tied else p["lm_head.weight"]
    return norm(x, "transformer.ln_f") @ head.T


def rotary_angles(s, seq_len):
    frequencies = []
    for j in range(s.head_dim // 2):
        f = s.rope_theta ** (-2 * j / s.head_dim)
        if s.rope_scaling:
            factor, low, high, original = s.rope_scaling
            wavelength = 2 * math.pi / f
            if wavelength > original / low:
                f = f / factor
            elif wavelength >= original / high:
                m = (original / wavelength - low) / (high - low)
                f = (1 - m) * f / factor + m * f
        frequencies.append(f)
    return torch.outer(torch.arange(seq_len).double(), torch.tensor(frequencies))


def rotate(x, angles):
    """Element j of a head pairs with j + D / 2."""
    low, high = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


def llama_logits(s, p, tokens):
    def norm(x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + s.norm_epsilon) * p[name]

    x = p["model.embed_tokens.weight"][tokens]
    angles = rotary_angles(s, tokens.shape[1])
    group = s.heads // s.kv_heads
    for i in range(s.layers):
        at = f"model.layers.{i}."
        n = norm(x, at + "input_layernorm.weight")
        q = split_heads(n @ p[at + "self_attn.q_proj.weight"].T, s.heads)
        k = split_heads(n @ p[at + "self_attn.k_proj.weight"].T, s.kv_heads)
        v = split_heads(n @ p[at + "self_attn.v_proj.weight"].T, s.kv_heads)
        q, k = rotate(q, angles), rotate(k, angles)
        a = attend(q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1))
        x = x + join_heads(a) @ p[at + "self_attn.o_proj.weight"].T
        n = norm(x, at + "post_attention_layernorm.weight")
        gate = n @ p[at + "mlp.gate_proj.weight"].T
        up = n @ p[at + "mlp.up_proj.weight"].T
        x = x + (gate * torch.sigmoid(gate) * up) @ p[at + "mlp.down_proj.weight"].T
    head = p["model.embed_tokens.weight"] if s.tied else p["lm_head.weight"]
    return norm(x, "model.norm.weight") @ head.T


def logits_of(s, p, tokens):
    return (gpt2_logits if s.family == "gpt2" else llama_logits)(s, p, tokens)


def token_losses(logits, targets):
    """One a token; 0 where the target does not count."""
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=-1, reduction="none"
    ).view(targets.shape)


def rate(s, step):
    """Of step 1, 2, ..., after `step - 1` finished ones."""
    finished = step - 1
    if finished < s.warmup_steps:
        return s.lr * (finished + 1) / s.warmup_steps
    after = s.total_steps - s.warmup_steps
    decay = after if s.decay_ratio is None else min(round(s.decay_ratio * s.total_steps), after)
    start = s.total_steps + 1 - decay
    if s.decay_shape == "constant" or finished < start:
        return s.lr
    p = (finished + 1 - start) / decay
    shape = {"linear": 1 - p, "cosine": (1 + math.cos(math.pi * p)) / 2,
             "sqrt": 1 - math.sqrt(p)}[s.decay_shape]
    return s.lr * (s.min_factor + (1 - s.min_factor) * shape)


class Wrong(Exception):
    pass


def compare(what, ours, reference, limit):
    """The largest difference as a share of the reference's largest value."""
    if ours.shape != reference.shape:
        raise Wrong(f"{what}: shape {tuple(ours.shape)}, expected {tuple(reference.shape)}")
    largest = reference.abs().max().item()
    if not largest > 0:
        raise Wrong(f"{what}: the reference is all zero and proves nothing")
    share = ((ours - reference).abs().max() / largest).item()
    if not share <= limit:  # a NaN lands here too
        raise Wrong(f"{what}: off by {share:.3g} of its largest value, the limit is {limit:g}")
    return share


def leaves(tensors):
    return {n: t.clone().requires_grad_() for n, t in tensors.items()}


def make_optimizer(s, p, epsilon):
    matrices = [t for t in p.values() if t.dim() >= 2]
    vectors = [t for t in p.values() if t.dim() < 2]
    return torch.optim.AdamW(
        [{"params": matrices, "weight_decay": s.weight_decay},
         {"params": vectors, "weight_decay": 0.0}],
        lr=s.lr, betas=(s.beta1, s.beta2), eps=epsilon)


def train_step(s, p, optimizer, lr, tokens, targets):
    optimizer.zero_grad()
    loss = token_losses(logits_of(s, p, tokens), targets).sum() / (targets >= 0).sum()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(list(p.values()), s.max_norm)
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.step()
    return loss.item(), norm.item()


def by_prefix(tensors, prefix):
    return {n[len(prefix) + 1:]: t for n, t in tensors.items() if n.startswith(prefix + "/")}


def check_gradients(s, tensors, start):
    tokens, targets = tensors["tokens"][0], tensors["targets"][0]
    p = leaves(start)
    logits = logits_of(s, p, tokens)
    losses = token_losses(logits, targets)
    losses.sum().backward()
    figures = {
        "logits": compare("logits", tensors["logits"], logits.detach(), GRADIENT_LIMIT),
        "loss": compare("token losses", tensors["evaluation_losses"], losses.detach(),
                        GRADIENT_LIMIT),
    }
    mean = (losses.sum() / (targets >= 0).sum()).item()
    compare("loss of the first step", tensors["losses"][0], torch.tensor(mean), GRADIENT_LIMIT)
    worst = 0
    for name, gradient in by_prefix(tensors, "gradients").items():
        reference = p[name].grad
        worst = max(worst, compare("gradient of " + name, gradient, reference, GRADIENT_LIMIT))
        for wrong in (torch.zeros_like(gradient), gradient * (1 + 3e-5)):
            try:
                compare(name, wrong, reference, GRADIENT_LIMIT)
            except Wrong:
                continue
            raise Wrong(f"gradient of {name}: the comparison lets a wrong gradient pass")
    figures["gradients"] = worst
    return figures


def check_single_update(s, tensors, start):
    p = leaves(start)
    optimizer = make_optimizer(s, p, s.single_update_epsilon)
    train_step(s, p, optimizer, s.single_update_rate, tensors["tokens"][0], tensors["targets"][0])
    worst = 0
    for name, updated in by_prefix(tensors, "updated").items():
        movement, expected = updated - start[name], p[name].detach() - start[name]
        worst = max(worst, compare("update of " + name, movement, expected, UPDATE_LIMIT))
        state = optimizer.state[p[name]]
        compare("first moment of " + name, tensors["first_moment/" + name], state["exp_avg"],
                2 * GRADIENT_LIMIT)
        compare("second moment of " + name, tensors["second_moment/" + name],
                state["exp_avg_sq"], 4 * GRADIENT_LIMIT)
    return worst


def check_training(s, tensors, start):
    p = leaves(start)
    optimizer = make_optimizer(s, p, s.epsilon)
    steps = tensors["tokens"].shape[0]
    worst, clipped = 0, 0
    for n in range(steps):
        lr = rate(s, n + 1)
        compare(f"rate of step {n + 1}", tensors["rates"][n], torch.tensor(lr), 1e-6)
        loss, norm = train_step(s, p, optimizer, lr, tensors["tokens"][n], tensors["targets"][n])
        clipped += norm > s.max_norm
        worst = max(worst, compare(f"loss of step {n + 1}", tensors["losses"][n],
                                   torch.tensor(loss), TRAJECTORY_LIMIT))
        compare(f"gradient norm of step {n + 1}", tensors["gradient_norms"][n],
                torch.tensor(norm), 10 * TRAJECTORY_LIMIT)
    if not tensors["losses"][-1] < tensors["losses"][0] - 0.1:
        raise Wrong("the training run learned nothing, so that its losses prove nothing")
    return worst, clipped, steps


def check_case(path):
    tensors, metadata = read_safetensors(path)
    s = Settings(metadata)
    start = by_prefix(tensors, "parameters")
    shapes = {name: tuple(t.shape) for name, t in start.items()}
    if shapes != expected_shapes(s):
        raise Wrong(f"names or shapes differ: {set(shapes.items()) ^ set(expected_shapes(s).items())}")
    for prefix in ("gradients", "updated", "first_moment", "second_moment"):
        if by_prefix(tensors, prefix).keys() != start.keys():
            raise Wrong(f"{prefix} are not complete")
    figures = check_gradients(s, tensors, start)
    update = check_single_update(s, tensors, start)
    trajectory, clipped, steps = check_training(s, tensors, start)
    print(f"{os.path.basename(path)[:-12]:30} logits {figures['logits']:.1e}  "
          f"losses {figures['loss']:.1e}  gradients {figures['gradients']:.1e}  "
          f"update {update:.1e}  {steps} losses {trajectory:.1e}  clipped {clipped}")
    return clipped, steps


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, folder], check=True)
        files = sorted(f for f in os.listdir(folder) if f.endswith(".safetensors"))
        failed, all_clipped, never_clipped = 0, 0, 0
        for name in files:
            try:
                clipped, steps = check_case(os.path.join(folder, name))
                all_clipped += clipped == steps
                never_clipped += clipped == 0
            except Wrong as wrong:
                failed += 1
                print(f"{name[:-12]:30} WRONG: {wrong}")
    families = {name.split("_")[0] for name in files}
    if families != {"gpt2", "llama"}:
        sys.exit("not both families were written")
    if not failed and not (all_clipped and never_clipped):
        sys.exit("no run was clipped in all steps and another in none, so clipping is not proven")
    if failed:
        sys.exit(f"{failed} of {len(files)} models are wrong")


main()

// Causal attention in tiles, forward and backward: what the two share, and the arithmetic they
// promise.
//
// Problem: T x T scores fit into no cache and, at long T, into no memory, and their softmax must
// have the same bits however the work is cut. Idea: keys are taken in blocks of 64 for ever, and
// everything that crosses a block (running maximum, rescaling, sums) happens once per key block;
// all else is a chain of fused multiply-adds in one order. So blocks of queries, threads and
// sequences per call are free.
//
// Forward, for a query i and each key block that has keys j <= i, with scale = 1 / sqrt(D) in fp32:
//   s_j = chain over d of q_d k_jd                from +0
//   m'  = the larger of m and the s_j             m starts at -infinity
//   c   = 1 in the first block or if m' = m, else exp((m - m') scale)
//   p_j = exp((s_j - m') scale)
//   l_n = l_n c, then + p_j for rising j with j mod 8 = n: eight lanes from +0
//   a_d = a_d c, then chain over j of p_j v_jd    from +0; p_j after dropout: 0, or p_j (1 / (1 -
//   p))
// and at the end L = fold of l_n, out_d = a_d (1 / L), lse = fma(m, scale, log(L)).
// The fold is ((l0+l4)+(l2+l6)) + ((l1+l5)+(l3+l7)).
//
// Backward, with D_i = fold of eight lanes of chains over d of dout_d out_d (lane = d mod 8):
//   p_ij  = exp(fma(s_ij, scale, -lse_i))
//   dp_ij = chain over d of dout_id v_jd          then dropout as above
//   ds_ij = (p_ij (dp_ij - D_i)) scale
//   dq_id = chain over keys j of ds_ij k_jd
//   dk_jd = chain over (head of the group, query i) of ds_ij q_id
//   dv_jd = the same chain of p_ij dout_id        p_ij after dropout
// A key behind its query takes part in no chain at all; a dropped probability takes part as +0.
//
// Not chosen: a partial sum per key block that is added later (one rounding more, and no scalar
// loop to compare with); parallel backward over key blocks (dq would need a second pass or
// atomics).
#pragma once

#include <cstddef>

#include "compute/cpu/kernels.hpp"

namespace troupe::compute::cpu {

// Queries computed together. They cannot show in the bits; the functions in kernels.hpp choose
// them.
void attention(thread_pool& pool, const attention_args& args, std::size_t query_block);
void attention_backward(thread_pool& pool, const attention_backward_args& args,
                        std::size_t query_block);

// Where things lie, and what both directions check.
struct attention_shape {
  std::size_t sequences, seq_len, heads, kv_heads, head_dim;

  std::size_t group() const { return heads / kv_heads; }
  std::size_t rows() const { return sequences * seq_len; }
  std::size_t qkv_stride() const { return (heads + 2 * kv_heads) * head_dim; }
  std::size_t out_stride() const { return heads * head_dim; }
  std::size_t query_at(std::size_t sequence, std::size_t head) const {
    return sequence * seq_len * qkv_stride() + head * head_dim;
  }
  std::size_t key_at(std::size_t sequence, std::size_t kv_head) const {
    return query_at(sequence, heads + kv_head);
  }
  std::size_t value_at(std::size_t sequence, std::size_t kv_head) const {
    return query_at(sequence, heads + kv_heads + kv_head);
  }
  std::size_t out_at(std::size_t sequence, std::size_t head) const {
    return sequence * seq_len * out_stride() + head * head_dim;
  }
  std::size_t lse_at(std::size_t sequence, std::size_t head) const {
    return (sequence * heads + head) * seq_len;
  }
  float scale() const;
  void check(const dropout_mask& dropout) const;
};

}  // namespace troupe::compute::cpu

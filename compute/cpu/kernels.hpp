// The operations of ops.hpp on the CPU, one file a family: linear, attention, norm, activation,
// embedding, dropout, cross_entropy, adamw, reduce. Each checks its views, then cuts its work into
// tiles for the pool.
#pragma once

#include "compute/cpu/thread_pool.hpp"
#include "compute/ops.hpp"

namespace troupe::compute::cpu {

// linear.cpp
void linear(thread_pool& pool, const linear_args& args);
void linear_backward_input(thread_pool& pool, const linear_backward_input_args& args);
void linear_backward_weight(thread_pool& pool, const linear_backward_weight_args& args);
// norm.cpp
void norm(thread_pool& pool, const norm_args& args);
void norm_backward_input(thread_pool& pool, const norm_backward_input_args& args);
void norm_backward_weight(thread_pool& pool, const norm_backward_weight_args& args);
// attention.cpp
void rotate(thread_pool& pool, const rotate_args& args);
void attention(thread_pool& pool, const attention_args& args);
void attention_backward(thread_pool& pool, const attention_backward_args& args);
// activation.cpp
void swiglu(thread_pool& pool, const swiglu_args& args);
void swiglu_backward(thread_pool& pool, const swiglu_backward_args& args);
// embedding.cpp
void embedding(thread_pool& pool, const embedding_args& args);
void embedding_backward(thread_pool& pool, const embedding_backward_args& args);
// dropout.cpp
void dropout(thread_pool& pool, const dropout_args& args);
// cross_entropy.cpp
void cross_entropy(thread_pool& pool, const cross_entropy_args& args);
// adamw.cpp
void adamw(thread_pool& pool, const adamw_args& args);
// reduce.cpp
void fill(thread_pool& pool, view out, float value);
void copy(thread_pool& pool, const_view from, view to);
void add(thread_pool& pool, const_view a, const_view b, view out);
void sum_squares(thread_pool& pool, const_view x, view out);
void add_in_order(thread_pool& pool, const_view x, view out);

// Highest fused multiply-add rate of `threads` threads in GFLOP/s, measured for about 50 ms with
// the instruction set that the kernels use. (peak.cpp)
double measure_fma_peak(int threads);
// What that is: "avx2" or "avx512". (instruction_set.cpp)
const char* fma_instruction_set();

}  // namespace troupe::compute::cpu

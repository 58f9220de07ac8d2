#include "compute/timed_executor.hpp"

#include <chrono>

namespace troupe::compute {
namespace {

double product_flops(std::size_t a, std::size_t b, std::size_t c) {
  return 2.0 * static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

// Causal: half of the T x T products; `products` of them an attention.
template <class Args>
double attention_flops(const Args& a, double products) {
  return products *
         product_flops(a.sequences * a.heads, a.seq_len * (a.seq_len + 1) / 2, a.head_dim);
}

class timed_ops final : public ops {
 public:
  timed_ops(ops& below, op_times& times) : below_(below), times_(times) {}

  void linear(const linear_args& a) override {
    time("linear", product_flops(a.rows, a.in, a.out), [&] { below_.linear(a); });
  }
  void linear_backward_input(const linear_backward_input_args& a) override {
    time("linear_backward_input", product_flops(a.rows, a.in, a.out),
         [&] { below_.linear_backward_input(a); });
  }
  void linear_backward_weight(const linear_backward_weight_args& a) override {
    time("linear_backward_weight", product_flops(a.rows, a.in, a.out),
         [&] { below_.linear_backward_weight(a); });
  }
  void norm(const norm_args& a) override {
    time("norm", 0, [&] { below_.norm(a); });
  }
  void norm_backward_input(const norm_backward_input_args& a) override {
    time("norm_backward_input", 0, [&] { below_.norm_backward_input(a); });
  }
  void norm_backward_weight(const norm_backward_weight_args& a) override {
    time("norm_backward_weight", 0, [&] { below_.norm_backward_weight(a); });
  }
  void rotate(const rotate_args& a) override {
    time("rotate", 0, [&] { below_.rotate(a); });
  }
  void attention(const attention_args& a) override {
    time("attention", attention_flops(a, 2), [&] { below_.attention(a); });
  }
  void attention_backward(const attention_backward_args& a) override {
    time("attention_backward", attention_flops(a, 5), [&] { below_.attention_backward(a); });
  }
  void swiglu(const swiglu_args& a) override {
    time("swiglu", 0, [&] { below_.swiglu(a); });
  }
  void swiglu_backward(const swiglu_backward_args& a) override {
    time("swiglu_backward", 0, [&] { below_.swiglu_backward(a); });
  }
  void embedding(const embedding_args& a) override {
    time("embedding", 0, [&] { below_.embedding(a); });
  }
  void embedding_backward(const embedding_backward_args& a) override {
    time("embedding_backward", 0, [&] { below_.embedding_backward(a); });
  }
  void dropout(const dropout_args& a) override {
    time("dropout", 0, [&] { below_.dropout(a); });
  }
  void cross_entropy(const cross_entropy_args& a) override {
    time("cross_entropy", 0, [&] { below_.cross_entropy(a); });
  }
  void adamw(const adamw_args& a) override {
    time("adamw", 0, [&] { below_.adamw(a); });
  }
  void fill(view out, float value) override {
    time("fill", 0, [&] { below_.fill(out, value); });
  }
  void copy(const_view from, view to) override {
    time("copy", 0, [&] { below_.copy(from, to); });
  }
  void add(const_view a, const_view b, view out) override {
    time("add", 0, [&] { below_.add(a, b, out); });
  }
  void sum_squares(const_view x, view out) override {
    time("sum_squares", 0, [&] { below_.sum_squares(x, out); });
  }
  void add_in_order(const_view x, view out) override {
    time("add_in_order", 0, [&] { below_.add_in_order(x, out); });
  }

 private:
  template <class Call>
  void time(const char* name, double flops, const Call& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    op_time& entry = times_[name];
    entry.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    entry.flops += flops;
    ++entry.calls;
  }

  ops& below_;
  op_times& times_;
};

}  // namespace

void timed_executor::submit(priority urgency, job work, completion done) {
  below_.submit(
      urgency,
      [work = std::move(work), times = times_](ops& below) {
        timed_ops measured(below, *times);
        work(measured);
      },
      std::move(done));
}

}  // namespace troupe::compute

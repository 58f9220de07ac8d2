#include "actors/model_computation.hpp"

#include <algorithm>

#include "actors/model_shape.hpp"
#include "config/base/error.hpp"
#include "model/data/order.hpp"

namespace troupe::actors {
namespace {

using compute::executor;
using compute::ops;

std::exception_ptr cancelled() { return std::make_exception_ptr(executor::cancelled()); }

}  // namespace

model_computation::model_computation(executor& device, const model::description& d,
                                     const trainer_settings& settings, sample_sources sources,
                                     post_function post)
    : device_(device),
      settings_(settings),
      sources_(std::move(sources)),
      post_(std::move(post)),
      network_(device, d, model::make_layout(d), settings.seq_len, settings.seed),
      shape_(shape_of(d, network_.layout())),
      blocks_(network_, shape_, settings.adamw, protocol_jobs(device, post_.to_loop()), seconds_) {}

model_computation::~model_computation() {
  post_.close();
  if (stop_validation_) stop_validation_->store(true);
  if (feed_) feed_->cancel();
  device_.cancel();
  try {
    device_.run([](ops&) {});  // behind all jobs, which refer to the network
  } catch (const std::exception&) {
  }
}

void model_computation::adopt(const member_share& share) {
  ensure(share.leaves == 0 || share.virtual_ranks == settings_.batch.virtual_ranks,
         "a share was made for another number of virtual ranks");
  cancel();
  const bool same_ranks =
      part_.pass && share.leaves == share_.leaves && share.first_leaf == share_.first_leaf;
  computing_part part;
  if (share.leaves > 0) {
    part.state = part_.state ? part_.state
                             : std::make_shared<model::model_state>(
                                   model::allocate_state(device_, network_.layout(), false));
    part.pass = same_ranks ? part_.pass
                           : std::make_shared<model::training_pass>(
                                 network_, settings_.batch,
                                 tree_node{share.first_leaf, share.leaves}, memory_);
  }
  blocks_.adopt(share, part);
  share_ = share;
  part_ = std::move(part);
  if (!same_ranks) loaded_.clear();
}

void model_computation::initialize(completion done) {
  const std::vector<held_blocks::first_values> spare = blocks_.begin_again();
  data_thread_.add([this, spare, state = part_.state, done = std::move(done),
                    post = post_.to_loop()]() mutable {
    std::exception_ptr problem;
    try {
      if (state) {
        model::initialize(device_, network_.described(), network_.layout(), settings_.seed, *state);
      }
      for (const held_blocks::first_values& block : spare) {
        std::vector<float> values(block.parameters.size);
        model::initial_values(network_.described(), network_.layout(), settings_.seed,
                              block.block.layer, block.block.block * model::block_elements, values);
        device_.run([&](ops& ops) {
          ops.copy(compute::host_view(std::span<const float>(values)), block.parameters);
        });
      }
    } catch (...) {
      problem = std::current_exception();
    }
    post([done = std::move(done), problem = std::move(problem)] { done(problem); });
  });
}

model_computation::samples_ptr model_computation::read_samples(std::uint64_t step,
                                                               tree_node of) const {
  const stopwatch watch;
  const std::size_t per_rank = settings_.batch.sequences_per_rank(), width = settings_.seq_len;
  const std::uint64_t first =
      model::data::first_position(step, settings_.batch.global_batch) + of.first * per_rank;
  const auto read = std::make_shared<samples>();
  read->ranks = of;
  read->tokens.resize(of.leaves * per_rank * width);
  read->targets.resize(read->tokens.size());
  for (std::size_t i = 0; i < of.leaves * per_rank && read->read; ++i) {
    read->read = sources_.training(first + i, std::span(read->tokens).subspan(i * width, width),
                                   std::span(read->targets).subspan(i * width, width));
  }
  read->seconds = watch.seconds();
  return read;
}

void model_computation::load(std::uint64_t step, completion done) {
  const auto post = post_.to_loop();
  if (share_.leaves == 0 || loaded_.contains(step)) {
    post([done = std::move(done)] { done(nullptr); });
    return;
  }
  data_thread_.add([this, step, post, of = ranks(), done = std::move(done)]() mutable {
    samples_ptr read = read_samples(step, of);
    post([this, step, read, done = std::move(done)] {
      seconds_.data += read->seconds;
      if (read->ranks != ranks()) return done(cancelled());  // of a share that is no more
      if (!read->read) {
        return done(std::make_exception_ptr(unreadable_samples(read->read.failure())));
      }
      loaded_[step] = read;
      done(nullptr);
    });
  });
}

void model_computation::start(std::uint64_t step, step_events events) {
  ensure(!feed_ || feed_->over() || feed_->cancelled(),
         "a step was started while another one is being computed");
  seconds_ = take_seconds();  // the feed's are gone with it
  std::vector<model::step_job> jobs;
  std::shared_ptr<void> keep;
  if (part_.pass) {
    loaded_.erase(loaded_.begin(), loaded_.lower_bound(step));
    const auto loaded = loaded_.find(step);
    ensure(loaded != loaded_.end(), "a step was started whose samples are not loaded");
    const samples_ptr& read = loaded->second;
    jobs = part_.pass->jobs(*part_.state, step, read->tokens, read->targets);
    keep = std::make_shared<std::pair<computing_part, samples_ptr>>(part_, read);
  }
  const auto told = std::make_shared<step_events>(std::move(events));
  feed_ = std::make_shared<step_feed>(
      device_, post_.to_loop(), std::move(jobs), shape_.layers.size(), std::move(keep),
      step_feed::events{.complete =
                            [told](const model::layer_source& of) {
                              told->nodes_ready(static_cast<std::uint32_t>(of.layer), of.source);
                            },
                        .micro_batch_done = told->micro_batch_done,
                        .ended =
                            [this, told, pass = part_.pass](std::exception_ptr problem) {
                              std::vector<leaf_loss> losses;
                              if (!problem && pass) losses = losses_of(*pass);
                              told->finished(problem, std::move(losses));
                            }});
  feed_->begin();
}

std::vector<leaf_loss> model_computation::losses_of(const model::training_pass& pass) const {
  std::vector<leaf_loss> losses;
  for (std::uint32_t i = 0; i < pass.ranks().leaves; ++i) {
    losses.push_back({pass.ranks().first + i, pass.losses().loss_sums[i], pass.losses().tokens[i]});
  }
  return losses;
}

void model_computation::open(std::uint32_t layer) {
  if (feed_ && !feed_->over()) feed_->open(layer);
}

void model_computation::cancel() {
  if (feed_) feed_->cancel();
  if (!stop_validation_) return;
  stop_validation_->store(true);
  device_.cancel();
}

std::span<const std::byte> model_computation::node(const node_key& key) const {
  return std::as_bytes(blocks_.own_node(key).host<float>());
}

void model_computation::evaluate(answer<std::vector<leaf_loss>> done) {
  const auto post = post_.to_loop();
  if (share_.leaves == 0 || sources_.validation_windows == 0) {
    post([done = std::move(done)] { done(nullptr, {}); });
    return;
  }
  const auto stop = stop_validation_ = std::make_shared<std::atomic<bool>>(false);
  validation_thread_.add([this, post, stop, done = std::move(done), state = part_.state,
                          of = ranks(), shares = share_.virtual_ranks]() mutable {
    std::exception_ptr problem;
    std::vector<leaf_loss> losses;
    try {
      if (!evaluation_) {
        evaluation_ = std::make_unique<model::evaluation>(
            network_, settings_.seq_len * sources_.validation_at_once);
      }
      const auto source = [&](std::uint64_t window, auto tokens, auto targets) -> status {
        if (*stop) return error{exit_code::interrupted, "the validation was cancelled"};
        return sources_.validation(window, tokens, targets);
      };
      auto found = share_losses(*evaluation_, *state, settings_.seq_len,
                                {sources_.validation_windows, shares}, of, source);
      if (found) losses = std::move(*found);
      if (!found && !*stop) problem = std::make_exception_ptr(unreadable_samples(found.failure()));
    } catch (...) {
      problem = std::current_exception();
    }
    if (*stop) problem = cancelled();
    post([this, stop, done = std::move(done), problem = std::move(problem),
          losses = std::move(losses)] {
      if (stop_validation_ == stop) stop_validation_ = nullptr;
      done(problem, losses);
    });
  });
}

work_seconds model_computation::take_seconds() {
  work_seconds all = std::exchange(seconds_, {});
  if (!feed_) return all;
  const work_seconds step = feed_->take_seconds();
  all.forward += step.forward;
  all.backward += step.backward;
  return all;
}

std::uint64_t model_computation::activation_bytes() const {
  return part_.pass ? part_.pass->activation_bytes() : 0;
}

}  // namespace troupe::actors

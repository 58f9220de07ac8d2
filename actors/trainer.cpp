#include "actors/trainer.hpp"

#include <algorithm>
#include <vector>

#include "actors/stopwatch.hpp"
#include "config/base/tree.hpp"
#include "model/job_chain.hpp"

namespace troupe::actors {
namespace {

std::size_t most_blocks(const model::model_layout& layout) {
  std::size_t most = 0;
  for (const model::layer_layout& layer : layout) most = std::max(most, layer.blocks());
  return most;
}

}  // namespace

trainer::trainer(compute::executor& device, const model::description& d,
                 const trainer_settings& settings)
    : settings_(settings),
      network_(device, d, model::make_layout(d), settings.seq_len, settings.seed),
      pass_(network_, settings.batch),
      state_(model::allocate_state(device, network_.layout(), true)),
      squares_(device.allocate(most_blocks(network_.layout()), compute::dtype::float64)) {}

void trainer::initialize() {
  model::initialize(network_.device(), network_.described(), layout(), settings_.seed, state_);
}

std::optional<protocol::decision_record> trainer::step(std::uint64_t step,
                                                       std::uint64_t updates_before,
                                                       std::span<const std::int32_t> tokens,
                                                       std::span<const std::int32_t> targets,
                                                       const std::function<bool()>& give_up) {
  stopwatch watch;
  const std::optional<model::leaf_losses> computed =
      pass_.run(state_, step, tokens, targets, give_up);
  if (!computed) return std::nullopt;
  const model::leaf_losses& losses = *computed;
  times_.compute = watch.lap();
  const protocol::step_votes votes{.loss_sum = tree_sum(losses.loss_sums),
                                   .tokens = tree_sum(losses.tokens),
                                   .squares = gradient_squares()};
  times_.reduce = watch.lap();
  const protocol::decision_record record =
      protocol::decide(step, updates_before, votes,
                       {.max_norm = settings_.max_norm,
                        .skip_nonfinite = settings_.skip_nonfinite,
                        .lr = settings_.schedule.rate(step)});
  if (!record.skip) apply(record);
  times_.apply = watch.lap();
  return record;
}

// Each block's squares, then the fixed tree over all blocks in model order.
double trainer::gradient_squares() {
  std::vector<double> blocks;
  for (std::size_t layer = 0; layer < layout().size(); ++layer) {
    std::vector<double> sums(layout()[layer].blocks());
    network_.device().run([&](compute::ops& ops) {
      model::block_squares(ops, layout()[layer], pass_.gradient(layer), squares_.all());
      ops.copy(squares_.part(0, sums.size()), compute::host_view(std::span(sums)));
    });
    blocks.insert(blocks.end(), sums.begin(), sums.end());
  }
  return tree_sum(blocks);
}

void trainer::apply(const protocol::decision_record& record) {
  const model::update_scalars scalars{
      .scale = record.scale,
      .lr = record.lr,
      .correction1 = model::bias_correction(settings_.adamw.beta1, record.updates),
      .correction2 = model::bias_correction(settings_.adamw.beta2, record.updates)};
  model::job_chain jobs(network_.device());
  for (std::size_t layer = 0; layer < layout().size(); ++layer) {
    jobs.add([this, layer, &scalars](compute::ops& ops) {
      for (std::size_t block = 0; block < layout()[layer].blocks(); ++block) {
        const std::size_t at = block * model::block_elements;
        const std::size_t size = layout()[layer].block_size(block);
        model::layer_state& state = state_.layers[layer];
        model::update_block(ops, layout()[layer], block, settings_.adamw, scalars,
                            {.gradient = pass_.gradient(layer).part(at, size),
                             .parameters = state.parameters.part(at, size),
                             .first_moment = state.first_moment.part(at, size),
                             .second_moment = state.second_moment.part(at, size)});
      }
    });
  }
  jobs.wait();
}

}  // namespace troupe::actors

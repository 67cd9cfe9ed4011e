// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/compat/distributed_sampler.hpp>

#include <penstock/core/message.hpp>
#include <penstock/order/compat/detail/torch_randperm.hpp>

#include <initializer_list>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE distributed_sampler_order::distributed_sampler_order(
    const order_input& in, const distributed_sampler_options& options, std::uint64_t narrow_up_to)
    : samples_(in.size), narrow_up_to_(narrow_up_to), options_(options) {
  const auto refuse = [](std::initializer_list<detail::piece> why) {
    throw error(errc::argument, why).in_stage("distributed_sampler");
  };
  const std::uint64_t ranks = options_.num_replicas;
  if (ranks == 0) {
    refuse(
        {"num_replicas is not given; write distributed_sampler({.num_replicas = n}) with the number of "
         "ranks that PyTorch had"});
  }
  if (ranks > max_replicas) refuse({"num_replicas ", ranks, " is not in [1, 2^24]"});
  if (samples_ >= std::uint64_t{1} << 63)
    refuse({"an endless order cannot be sampled; write distributed_sampler before repeat()"});
  size_ = samples_ / ranks * ranks;
  if (size_ != samples_ && !options_.drop_last) size_ += ranks;
}

PENSTOCK_INLINE distributed_sampler_order::bound distributed_sampler_order::bind(std::uint64_t epoch) const {
  return {epoch, samples_, options_.shuffle ? shuffled(epoch) : nullptr};
}

PENSTOCK_INLINE std::optional<position> distributed_sampler_order::position_of(position upstream) const {
  if (upstream.index >= samples_) return std::nullopt;
  std::uint64_t found = upstream.index;
  if (options_.shuffle) {
    const shared_table order = shuffled(upstream.epoch);
    found = 0;
    while ((*order)[found] != upstream.index) ++found;
  }
  if (found >= size_) return std::nullopt;
  return position{upstream.epoch, found};
}

PENSTOCK_INLINE distributed_sampler_order::shared_table distributed_sampler_order::shuffled(
    std::uint64_t epoch) const {
  return tables_.get(epoch, [&] {
    const std::uint64_t seed = options_.seed + options_.epoch + epoch;
    table made;
    if (samples_ <= narrow_up_to_)
      made.narrow = detail::torch_randperm<std::uint32_t>(samples_, seed);
    else
      made.wide = detail::torch_randperm<std::uint64_t>(samples_, seed);
    return made;
  });
}

PENSTOCK_INLINE std::string distributed_sampler_stage::describe() const {
  return detail::text({"distributed_sampler(", options.num_replicas, " replicas",
                       options.shuffle ? ", seed " + std::to_string(options.seed) : ", in order",
                       options.drop_last ? ", drop_last" : "",
                       options.epoch == 0 ? "" : ", epochs from " + std::to_string(options.epoch), ")"});
}

}  // namespace penstock::inline v0_1

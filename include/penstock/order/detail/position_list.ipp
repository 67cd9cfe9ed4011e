// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/position_list.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::uint64_t position_list::fingerprint() const noexcept {
  class fingerprint h;
  h.add(upstream_, kept_);
  for (std::uint64_t i = 0; i < kept_;) {
    const std::uint64_t begin = (*this)[i];
    std::uint64_t n = 1;
    if (runs_.empty())
      while (i + n < kept_ && singles_[i + n] == begin + n) ++n;
    else
      n = length(detail::to_size(last_not_above(before_.data(), before_.size(), i)));
    h.add(begin, n);
    i += n;
  }
  return h.value();
}

PENSTOCK_INLINE void position_list::add(std::uint64_t begin, std::uint64_t end) {
  if (runs_.empty() || runs_.back() + length(runs_.size() - 1) != begin) {
    runs_.push_back(begin);
    before_.push_back(kept_);
  }
  kept_ += end - begin;
}

PENSTOCK_INLINE void position_list::choose_form() {
  // A run takes 16 bytes, a position 4 or 8.
  if (runs_.size() * 4 <= kept_) return;
  singles_.resize(kept_);
  std::uint64_t to = 0;
  for (std::size_t r = 0; r < runs_.size(); ++r)
    for (std::uint64_t i = runs_[r], n = length(r); n != 0; --n) singles_.set(to++, i++);
  runs_ = {};
  before_ = {};
}

PENSTOCK_INLINE void check_places(const order_input& in, std::uint64_t values, std::uint64_t dataset,
                                  std::string_view what, std::string_view stage) {
  check_finite(in, stage);
  if (!in.places) {
    throw error(
        errc::argument,
        {stage,
         " needs to know which sample is at each position, but after shuffle, repeat, weighted, batch "
         "or mix that changes from epoch to epoch; write ",
         stage, " before it"})
        .in_stage(stage);
  }
  if (dataset != 0 && in.places->dataset() != 0 && in.places->dataset() != dataset) {
    throw error(errc::argument, {"this is not the dataset from which ", what,
                                 " was made (the fingerprints differ); make it again"})
        .in_stage(stage);
  }
  if (values != in.places->samples()) {
    throw error(errc::argument, {what, " has ", values, " values, but the dataset has ", in.places->samples(),
                                 " samples; there must be one for each"})
        .in_stage(stage);
  }
}

PENSTOCK_INLINE listed_order::listed_order(const order_input& in, shared<const position_list> samples) {
  if (!in.places->as_stored() || in.size != samples->upstream()) {
    const auto kept = [&all = *samples, &places = *in.places](std::uint64_t i) { return all.has(places(i)); };
    const auto next = [](std::uint64_t i) { return i + 1; };
    made_.list.reset(new const position_list(in.size, kept, next));
  } else {
    made_.list = std::move(samples);
  }
  const position_list& all = *made_.list;
  size_ = all.size();
  starts_ = starts_behind(in.starts, [&](std::uint64_t p) { return all.kept_before(p); });
  places_ = places_behind(in.places, made_);
}

PENSTOCK_INLINE std::optional<position> listed_order::position_of(position upstream) const noexcept {
  const position_list& all = *made_.list;
  if (upstream.index >= all.upstream() || !all.has(upstream.index)) return std::nullopt;
  return position{upstream.epoch, all.kept_before(upstream.index)};
}

}  // namespace penstock::inline v0_1::detail

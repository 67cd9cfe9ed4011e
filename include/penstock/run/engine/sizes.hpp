// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/options.hpp>
#include <penstock/core/shape_class.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/run/block/column_set.hpp>
#include <penstock/run/engine/detail/engine_parts.hpp>

#include <type_traits>

namespace penstock::inline v0_1 {

namespace detail {

/// Bytes of an element in the slots of a batch, as far as its type says; 0 if it does not.
template <class V>
inline constexpr std::uint64_t slot_bytes_of = [] {
  using stored_type = stored<std::remove_cvref_t<V>>;
  if constexpr (stored_type::shape == shape_class::fixed)
    return std::uint64_t{sizeof(typename stored_type::type)} * stored_type::elements;
  else
    return std::uint64_t{0};
}();
template <class... Fields>
inline constexpr std::uint64_t slot_bytes_of<record<Fields...>> =
    (slot_bytes_of<typename Fields::type> + ... + std::uint64_t{0});

/// Whether a value consists of finished numbers, of a size given by its type.
template <class V>
inline constexpr bool plain_values = all_fixed<V>::value && !has_unfinished<V>::value;

}  // namespace detail

/// Plans that turn plain numbers into plain numbers: a sample costs so little that blocks, grains and loops
/// handle many at once. An element declared unfinished is never plain, however small its handle.
template <class Plan>
inline constexpr bool plain_plan =
    detail::plain_values<typename plan_parts<Plan>::element> &&
    detail::plain_values<std::remove_cvref_t<typename Plan::source_type::element>>;

/// Facts about a plan, its device and its machine that determine the sizes of a run.
struct size_facts {
  bool direct = false;             ///< the slots of batches are known before anything is evaluated
  bool plain = false;              ///< see `plain_plan`
  bool maps_batches = false;       ///< whole batches are processed, which may take any time
  bool one_at_a_time = false;      ///< samples take far longer than their bytes say, as images do
  bool takes_time = false;         ///< samples may take any time, whatever their bytes: functions are called
  bool batch_by_chunk = false;     ///< a forward source, with nothing between chunks and batches
  bool copies = false;             ///< batches are copied to a device
  bool crowded = false;            ///< threads share processors
  bool latency = false;            ///< reads are so slow that starting them early pays
  std::uint64_t slot_bytes = 0;    ///< of a sample in a batch; 0 if its type does not say
  std::uint64_t sample_bytes = 0;  ///< of a sample, as the source reports it; 0 if it does not know
  std::uint64_t batch_size = 0;    ///< of this rank; 0 without `batch`
};

/// Fills in the facts that a plan and its source's reader provide.
template <class Plan>
[[nodiscard]] size_facts size_facts_of(const Plan& p,
                                       const typename Plan::source_type::reader* reader = nullptr) {
  using parts = plan_parts<Plan>;
  size_facts facts;
  facts.direct = parts::direct;
  facts.plain = plain_plan<Plan>;
  facts.maps_batches = parts::maps_batches;
  facts.one_at_a_time = Plan::one_at_a_time;
  facts.takes_time = !(Plan::only_chooses && reader_traits_of<typename Plan::source_type::reader>.in_memory);
  facts.batch_by_chunk = parts::batched && parts::forward && !parts::decided;
  facts.slot_bytes = detail::slot_bytes_of<typename parts::element>;
  facts.latency = reader_traits_of<typename Plan::source_type::reader>.latency;
  if constexpr (parts::batched) {
    if constexpr (parts::packs_online)
      facts.batch_size = detail::at<parts::in::packs>(p.stages()).options.window;
    else if constexpr (!parts::facts.uneven)
      facts.batch_size = detail::at<parts::in::batch>(p.stages()).size;
    facts.slot_bytes = columns_of<Plan>::row_bytes;  // includes gaps
  }
  if (reader != nullptr) facts.sample_bytes = bytes_per_sample_of(*reader);
  return facts;
}

/// The sizes of the pieces that a run divides its work into: arithmetic on what is known at opening. They
/// affect how fast a run is, never what it delivers. Everything is measured in the bytes that slots will
/// hold, not in the size of the handles that pass through the stages.
class run_sizes {
 public:
  run_sizes(const run_options& options, const size_facts& facts) noexcept
      : options_(options), facts_(facts) {}

  /// Batches per block: one, except for small batches of plain numbers, where a hand-over costs more than the
  /// evaluation, and where whole batches are not processed. `slots`: of one batch.
  [[nodiscard]] std::size_t batches_per_block(std::uint64_t slots) const noexcept;
  /// Blocks in flight: a few more than workers, so that they stay in the cache; more where threads share
  /// processors and the consumer is not woken for each block. `slots`: of one block.
  [[nodiscard]] std::size_t depth(std::uint64_t slots) const noexcept;
  /// Slots that a worker takes at a time: about 32 KB, 64 KB if there is only the consumer; one if samples
  /// are large or are images, a few if their size is unknown. A chunk is taken whole. `slots`: of one block.
  [[nodiscard]] std::uint64_t grain(std::uint64_t slots) const noexcept;
  /// Grains of a block of so many slots, of which a batch has `batch`: enough that all workers share the
  /// first batch where samples may take any time.
  [[nodiscard]] std::uint64_t grains(std::uint64_t slots, std::uint64_t batch) const noexcept;
  /// Slots of a chunk, at most.
  [[nodiscard]] std::uint64_t chunk() const noexcept;
  /// Slots of the first chunks: few where samples may take any time, so that workers share the first batch.
  [[nodiscard]] std::uint64_t first_chunk() const noexcept;

 private:
  /// Slots of a plain plan that a worker takes at a time, and the minimum of a block: few where they stay in
  /// the nearest cache, many where switching threads costs more.
  [[nodiscard]] std::uint64_t plain_slots() const noexcept;
  /// The number of slots that hold so many bytes, at least one and at most `maximum`; `unknown` if the size
  /// of samples shows only when they are read.
  [[nodiscard]] std::uint64_t slots_in(std::uint64_t bytes, std::uint64_t maximum,
                                       std::uint64_t unknown) const noexcept;

  run_options options_;
  size_facts facts_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/sizes.ipp>
#endif

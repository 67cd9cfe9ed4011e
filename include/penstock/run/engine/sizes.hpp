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

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace penstock::inline v0_1 {

namespace detail {

/// Bytes that an element takes in the slots of a batch, as far as its type tells; 0 where it does not.
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

/// Whether a value is numbers that are there: of a size that its type tells, and finished.
template <class V>
inline constexpr bool plain_values = all_fixed<V>::value && !has_unfinished<V>::value;

}  // namespace detail

/// Plans that make plain numbers of plain numbers: a sample costs so little that blocks, grains and loops are
/// made for many at once. What is announced as unfinished is never plain, however small its handle is.
template <class Plan>
inline constexpr bool plain_plan =
    detail::plain_values<typename plan_parts<Plan>::element> &&
    detail::plain_values<std::remove_cvref_t<typename Plan::source_type::element>>;

/// The facts about a plan, its device and its machine that the sizes of a run follow from.
struct size_facts {
  bool direct = false;             ///< batches whose slots are known before anything is evaluated
  bool plain = false;              ///< see `plain_plan`
  bool maps_batches = false;       ///< something is done with whole batches, which may cost any time
  bool batch_by_chunk = false;     ///< over a forward source, with nothing between chunks and batches
  bool copies = false;             ///< batches are copied to a device
  bool crowded = false;            ///< threads share processors
  bool latency = false;            ///< reads take so long that they are worth beginning early
  std::uint64_t slot_bytes = 0;    ///< that a sample takes in a batch; 0 where its type does not tell
  std::uint64_t sample_bytes = 0;  ///< of a sample as the source knows it; 0 where it does not
  std::uint64_t batch_size = 0;    ///< of this rank; 0 without `batch`
};

/// Fills in the facts that a plan and the reader of its source tell.
template <class Plan>
[[nodiscard]] size_facts size_facts_of(
    const Plan& p, [[maybe_unused]] const typename Plan::source_type::reader* reader = nullptr) {
  using parts = plan_parts<Plan>;
  size_facts facts;
  facts.direct = parts::direct;
  facts.plain = plain_plan<Plan>;
  facts.maps_batches = parts::maps_batches;
  facts.batch_by_chunk = parts::batched && parts::forward && !parts::decided;
  facts.slot_bytes = detail::slot_bytes_of<typename parts::element>;
  facts.latency = has_latency<typename Plan::source_type::reader>;
  if constexpr (parts::batched) {
    if constexpr (!parts::facts.uneven) facts.batch_size = detail::at<parts::in::batch>(p.stages()).size;
    facts.slot_bytes = columns_of<Plan>::row_bytes;  // gaps are a part of it
  }
  if constexpr (knows_bytes_per_sample<typename Plan::source_type::reader>) {
    if (reader != nullptr) facts.sample_bytes = reader->bytes_per_sample();
  }
  return facts;
}

/// How large the pieces are into which a run cuts its work: arithmetic on what is known when it is opened. It
/// decides how fast a run is, never what it gives. Everything is measured in the bytes that will stand in the
/// slots, not in the size of the handles that travel there.
class run_sizes {
 public:
  run_sizes(const run_options& options, const size_facts& facts) noexcept
      : options_(options), facts_(facts) {}

  /// Batches of one block: one, but for small batches of plain numbers, where handing over costs more than
  /// evaluating, and where nothing is done with whole batches. `slots`: of one batch.
  [[nodiscard]] std::size_t batches_per_block(std::uint64_t slots) const noexcept;
  /// Blocks in flight: a few more than workers, so that they stay in the cache; more where threads share
  /// processors and the consumer is not woken for each. `slots`: of one block.
  [[nodiscard]] std::size_t depth(std::uint64_t slots) const noexcept;
  /// Slots that a worker takes at a time: some 32 KB, one where samples are large, a few where nothing is
  /// known. A chunk is taken whole. `slots`: of one block.
  [[nodiscard]] std::uint64_t grain(std::uint64_t slots) const noexcept;
  /// Slots of a chunk.
  [[nodiscard]] std::uint64_t chunk() const noexcept;

 private:
  /// Slots of a plain plan that a worker takes at a time, and that a block holds at least: few where they
  /// stay in the nearest cache, many where changing threads costs more.
  [[nodiscard]] std::uint64_t plain_slots() const noexcept;
  /// Slots that make up so many bytes, at least one and at most `most`; `unknown` where samples show their
  /// size only when they are read.
  [[nodiscard]] std::uint64_t slots_in(std::uint64_t bytes, std::uint64_t most,
                                       std::uint64_t unknown) const noexcept;

  run_options options_;
  size_facts facts_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/sizes.ipp>
#endif

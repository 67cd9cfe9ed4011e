// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>
#include <penstock/order/equal_work.hpp>
#include <penstock/order/row_packer.hpp>
#include <penstock/order/schedule.hpp>
#include <penstock/order/tail.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

// GCC 12 takes a scoped enumerator for one that shadows `split`.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
/// What becomes of samples that are longer than a row.
enum class overlong : std::uint8_t {
  refuse,    ///< an error that names the first one
  truncate,  ///< they lose what does not fit
  split,     ///< they become pieces, which go to rows like other samples
  drop       ///< they are left out
};
#pragma GCC diagnostic pop

[[nodiscard]] constexpr std::string_view to_string(overlong what) noexcept {
  constexpr std::string_view names[] = {"refuse", "truncate", "split", "drop"};
  return names[static_cast<std::size_t>(what)];
}
[[nodiscard]] constexpr std::string_view to_string(packing how) noexcept {
  constexpr std::string_view names[] = {"best_fit", "first_fit", "in_order"};
  return names[static_cast<std::size_t>(how)];
}

/// The options of `pack`.
struct pack_options {
  packing how = packing::best_fit;
  penstock::overlong overlong = penstock::overlong::refuse;
  /// Samples that are packed together: so many positions of the epoch, one after another.
  std::uint64_t window = 10'000;
  /// Each sample is padded to a multiple of it: 2 x the size of context parallelism, or what kernels want.
  std::uint64_t align = 1;
  /// Samples in a row, at most; 0: any number.
  std::uint64_t max_samples = 0;
  /// The value in padding of the first field that `pack` names; other fields have 0 there.
  std::int64_t pad = 0;
};

namespace detail {

/// What to do about a sample that is longer than a row.
inline constexpr std::string_view how_to_pack_long_samples =
    "; raise the capacity, or say what becomes of such samples: .overlong = overlong::truncate, "
    "overlong::split or overlong::drop";

}  // namespace detail

/// The rows of a step, and how ranks divide them.
struct row_batches {
  std::uint64_t size = 1;
  bool global = false;  ///< `size` counts the rows of all ranks together
  tail at_end = tail::keep;
  std::optional<work_weights> dealt_by{};

  [[nodiscard]] std::uint64_t of_all(std::uint64_t ranks) const noexcept {
    return global ? size : size * ranks;
  }
};

/// What a plan tells its `packed_cut`.
struct packed_facts {
  schedule capacity;
  pack_options options;
  row_batches rows;
  std::string lengths;                  ///< names the lengths of samples, for errors
  std::uint32_t slices = 1, slice = 0;  ///< of `context_parallel`
};

}  // namespace penstock::inline v0_1

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/order/detail/arithmetic.hpp>

#include <bit>
#include <initializer_list>
#include <string>
#include <vector>

namespace penstock::inline v0_1 {

/// The buckets of `bucket_by`: their upper edges, or how many there are.
///
/// A length belongs to the first bucket whose edge is not below it, and to the last bucket, which has no
/// edge, if all are: n edges make n + 1 buckets. A number of buckets alone means edges between which the
/// samples have equally many tokens, found from their lengths, as Lhotse does; `least_padding(n)` means those
/// with the least padding. If many lengths are equal, there may be fewer.
///
/// Throws `error(errc::argument)` for no bucket or more than 255, and for edges that do not ascend.
class bucket_edges {
 public:
  /// So many buckets.
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  bucket_edges(T buckets)  // NOLINT(google-explicit-constructor): arguments convert implicitly
      : wanted_(checked_buckets(any_count(buckets).of("bucket_by"))) {}
  bucket_edges(std::initializer_list<std::uint64_t> edges)  // NOLINT(google-explicit-constructor)
      : bucket_edges(std::vector<std::uint64_t>(edges)) {}
  bucket_edges(std::vector<std::uint64_t> edges);  // NOLINT(google-explicit-constructor)

  /// How many buckets are wanted; 0 if the edges are given.
  [[nodiscard]] std::uint64_t wanted() const noexcept { return wanted_; }
  /// Whether they are those with the least padding.
  [[nodiscard]] bool with_least_padding() const noexcept { return least_; }
  [[nodiscard]] const std::vector<std::uint64_t>& edges() const noexcept { return edges_; }
  /// In words: "30 buckets", or "edges 128, 256, 512".
  [[nodiscard]] std::string describe() const;

 private:
  [[nodiscard]] static std::uint64_t checked_buckets(std::uint64_t buckets);

  friend bucket_edges least_padding(any_count buckets);

  std::uint64_t wanted_ = 0;
  bool least_ = false;
  std::vector<std::uint64_t> edges_;
};

/// So many buckets for `bucket_by`, with the edges at which the samples need the least padding if each is
/// padded to its bucket's edge. Buckets then differ in how many steps they have.
///
///     const auto length = [](std::uint64_t i) { return 1 + i % 512; };
///     auto loader = source | shuffle(seed(7)) | bucket_by(length, least_padding(30), {.max_tokens = 16'384});
[[nodiscard]] inline bucket_edges least_padding(any_count buckets) {
  bucket_edges made(buckets.of("least_padding"));
  made.least_ = true;
  return made;
}

namespace detail {

/// Finds the bucket of a length.
class bucket_table {
 public:
  explicit bucket_table(const std::vector<std::uint64_t>& edges);

  [[nodiscard]] std::uint64_t buckets() const noexcept { return starts_.size(); }
  [[nodiscard]] std::uint8_t bucket(std::uint64_t length) const noexcept {
    if (length < short_.size()) return short_[detail::to_size(length)];
    return static_cast<std::uint8_t>(last_not_above(starts_.data(), starts_.size(), length));
  }
  /// The upper edges of all buckets but the last.
  [[nodiscard]] std::vector<std::uint64_t> edges() const;

 private:
  static constexpr std::uint64_t looked_up = 16'384;

  std::vector<std::uint64_t> starts_;  // the smallest length of each bucket
  std::vector<std::uint8_t> short_;    // the buckets of lengths below `looked_up`, which are most
};

/// How many lengths there are of each, from which edges are found. Lengths below 8192 are counted one by one,
/// longer ones in cells of less than 1/4096 of a length: 4 MB, whatever their number.
class length_counts {
 public:
  length_counts() : cells_(cell_count) {}

  void add(std::uint64_t length) noexcept {
    cell& counted = cells_[cell_of(length)];
    counted.count += 1;
    counted.sum += static_cast<double>(length);
  }
  [[nodiscard]] std::vector<std::uint64_t> edges(const bucket_edges& wanted) const {
    return wanted.with_least_padding() ? least_padding(wanted.wanted()) : equal_sums(wanted.wanted());
  }

 private:
  struct cell {
    double count = 0, sum = 0;
  };
  static constexpr std::uint32_t bits = 12;
  static constexpr std::size_t cell_count = (std::size_t{64} - bits + 1) << bits;

  [[nodiscard]] static std::size_t cell_of(std::uint64_t length) noexcept {
    const std::size_t shift =
        length >> (bits + 1) == 0 ? 0 : detail::to_size(std::bit_width(length)) - bits - 1;
    return (shift << bits) + detail::to_size(length >> shift);
  }
  /// The longest length of a cell.
  [[nodiscard]] static std::uint64_t longest_of(std::size_t cell) noexcept;
  [[nodiscard]] double total() const noexcept;
  [[nodiscard]] std::vector<std::uint64_t> equal_sums(std::uint64_t buckets) const;
  /// Considers about 1,000 edges: enough that more would hardly change the padding. Lengths between two of
  /// them stay together, so the cost of buckets is a Monge array, and the best edges of one more bucket are
  /// found by divide and conquer.
  [[nodiscard]] std::vector<std::uint64_t> least_padding(std::uint64_t buckets) const;

  std::vector<cell> cells_;
};

}  // namespace detail

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/order/bucket_edges.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_seed.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/detail/fraction.hpp>
#include <penstock/order/detail/position_list.hpp>

namespace penstock::inline v0_1 {

/// The 64-bit hash by which `split_by_key` chooses sides. Identical on every machine and in every version.
///
/// It starts as h = mix64(seed). A number is one 64-bit word (two's complement; a floating-point number by
/// its bits as a double, with -0 as 0). A text is first its length and then its bytes, eight to a word, the
/// first byte lowest, the last word padded with zeros. For each word w: h = mix64(h ^ mix64(w)). `mix64` is
/// in core/random.hpp.
template <class Value>
[[nodiscard]] std::uint64_t key_hash(const Value& value, std::uint64_t seed) {
  std::uint64_t h = mix64(seed);
  const auto word = [&h](std::uint64_t w) { h = mix64(h ^ mix64(w)); };
  if constexpr (std::is_floating_point_v<Value>) {
    word(value == 0 ? 0 : detail::bits_of(static_cast<double>(value)));
  } else if constexpr (std::is_arithmetic_v<Value>) {
    word(static_cast<std::uint64_t>(value));
  } else {
    const std::string_view text(value);
    word(text.size());
    for (std::size_t i = 0; i < text.size(); i += 8) {
      std::uint64_t packed = 0;
      for (std::size_t k = 0; k < 8 && i + k < text.size(); ++k)
        packed |= std::uint64_t{static_cast<unsigned char>(text[i + k])} << (8 * k);
      word(packed);
    }
  }
  return h;
}

/// The stage `split_by_key(values, fraction, seed(7))`, and that of its `complement()`.
class split_by_key_stage {
 public:
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "split_by_key";
  static constexpr bool wants_places = true;

  split_by_key_stage(const sample_values auto& values, double fraction, std::uint64_t seed)
      : fraction_(detail::checked_fraction(fraction, stage_name)),
        seed_(seed),
        dataset_(values.dataset()),
        mark_(values.fingerprint()),
        what_(values.describe()) {
    // 53 bits of the hash, so that the comparison is exact
    const auto below = [&](std::uint64_t i) {
      return static_cast<double>(key_hash(values[i], seed_) >> 11) * 0x1.0p-53 < fraction_;
    };
    const auto until = [&](std::uint64_t i) { return detail::same_until(values, i); };
    kept_.reset(new const detail::position_list(values.size(), below, until));
    others_.reset(new const detail::position_list(
        values.size(), [&](std::uint64_t i) { return !kept_->has(i); }, until));
  }

  /// The groups that this stage leaves out.
  [[nodiscard]] split_by_key_stage complement() const {
    split_by_key_stage made = *this;
    made.rest_ = !rest_;
    std::swap(made.kept_, made.others_);
    return made;
  }

  [[nodiscard]] detail::listed_order make(const order_input& in) const {
    detail::check_places(in, kept_->upstream(), dataset_, what_, stage_name);
    return {in, kept_};
  }
  /// The number of samples of the dataset that are kept.
  [[nodiscard]] std::uint64_t size() const noexcept { return kept_->size(); }
  [[nodiscard]] std::string describe() const {
    return detail::text({"split_by_key(", what_, ", ", detail::fraction_text(fraction_), ", seed ", seed_,
                         rest_ ? ").complement()" : ")"});
  }
  void fingerprint(auto& h) const { h.add(stage_name, detail::bits_of(fraction_), seed_, rest_, mark_); }

 private:
  double fraction_;
  std::uint64_t seed_, dataset_, mark_;
  bool rest_ = false;
  std::string what_;
  shared<const detail::position_list> kept_, others_;
};

namespace detail {
struct split_by_key_fn {
  [[nodiscard]] split_by_key_stage operator()(const sample_values auto& values, double fraction,
                                              any_seed seed) const {
    return {values, fraction, seed.value()};
  }
};
}  // namespace detail

/// Splits by groups: samples with equal values land on the same side, whichever dataset they are in and
/// whatever other values there are. `split_by_key(patients, 0.8, seed(7))` keeps about 0.8 of the values, and
/// `.complement()` keeps the others.
///
/// A value is kept if its hash (`key_hash`) is below fraction * 2^64. So a sample never changes sides when
/// others are added, and a larger fraction keeps everything that a smaller one does. The number of samples
/// kept depends on the groups: with few or very unequal groups, it may be far from the fraction. `size()`
/// tells how many are kept.
/// In: values as for `subset`, often a part of the key; a fraction strictly between 0 and 1; a seed.
/// Placement, guarantees, cost, errors and threads: as `subset`; both sides are kept in memory.
///
///     auto patient = derive(source, "patient", [](const auto&, std::string_view key) {
///       return std::string(key.substr(0, key.find('/')));
///     }, "derived");
///     auto train = source | split_by_key(patient, 0.8, seed(7)) | shuffle(seed(1));
///     auto valid = source | split_by_key(patient, 0.8, seed(7)).complement();
inline constexpr detail::split_by_key_fn split_by_key{};

}  // namespace penstock::inline v0_1

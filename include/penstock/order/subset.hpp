// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/fraction.hpp>
#include <penstock/order/detail/position_list.hpp>

#include <compare>

namespace penstock::inline v0_1 {

namespace detail {

/// The stored type of a predicate's number or text, which also distinguishes it from other types.
template <class T>
using kept_operand =
    std::conditional_t<std::convertible_to<const T&, std::string_view>, std::string, std::remove_cvref_t<T>>;

template <class T>
concept operand = std::convertible_to<const T&, std::string_view> || std::is_arithmetic_v<T>;

/// Numbers compare by value, whatever their types; numbers and texts never compare.
template <class Value, class Operand>
concept comparable_operand = (std::is_arithmetic_v<Value> && std::is_arithmetic_v<Operand>) ||
                             (!std::is_arithmetic_v<Value> && !std::is_arithmetic_v<Operand>);

template <class Value, class Operand>
[[nodiscard]] std::partial_ordering compare_operand(const Value& value, const Operand& wanted) {
  if constexpr (std::is_integral_v<Value> && std::is_integral_v<Operand> && !std::same_as<Operand, bool>)
    return std::cmp_less(+value, +wanted)    ? std::partial_ordering::less  // + turns a char into a number
           : std::cmp_equal(+value, +wanted) ? std::partial_ordering::equivalent
                                             : std::partial_ordering::greater;
  else if constexpr (std::is_arithmetic_v<Value>)
    return static_cast<double>(value) <=> static_cast<double>(wanted);
  else
    return std::string_view(value) <=> std::string_view(wanted);
}

template <class Operand>
[[nodiscard]] std::string operand_text(const Operand& value) {
  if constexpr (std::is_floating_point_v<Operand>)
    return fraction_text(static_cast<double>(value));
  else if constexpr (std::is_same_v<Operand, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_arithmetic_v<Operand>)
    return std::to_string(value);
  else
    return text({"'", value, "'"});
}

}  // namespace detail

/// A predicate of `subset`: the value is one of a list.
template <class Operand>
class one_of_these {
 public:
  explicit one_of_these(std::vector<Operand> wanted) : wanted_(std::move(wanted)) {}

  template <class Value>
    requires detail::comparable_operand<Value, Operand>
  [[nodiscard]] bool operator()(const Value& value) const {
    return std::ranges::any_of(wanted_,
                               [&](const Operand& one) { return detail::compare_operand(value, one) == 0; });
  }
  [[nodiscard]] std::string describe() const {
    if (wanted_.size() == 1) return detail::operand_text(wanted_[0]);
    std::string line = "one of ";
    for (std::size_t i = 0; i < wanted_.size() && i < 4; ++i)
      line += (i == 0 ? "" : ", ") + detail::operand_text(wanted_[i]);
    return wanted_.size() > 4 ? line + ", ..." : line;
  }
  [[nodiscard]] const std::vector<Operand>& wanted() const noexcept { return wanted_; }

 private:
  std::vector<Operand> wanted_;
};

/// A predicate of `subset`: the value is between two bounds, both included.
template <class Low, class High>
class between_these {
 public:
  between_these(Low low, High high) : low_(std::move(low)), high_(std::move(high)) {}

  template <class Value>
    requires(detail::comparable_operand<Value, Low> && detail::comparable_operand<Value, High>)
  [[nodiscard]] bool operator()(const Value& value) const {
    return !(detail::compare_operand(value, low_) < 0) && detail::compare_operand(value, high_) <= 0;
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"from ", detail::operand_text(low_), " to ", detail::operand_text(high_)});
  }
  [[nodiscard]] const Low& low() const noexcept { return low_; }
  [[nodiscard]] const High& high() const noexcept { return high_; }

 private:
  Low low_;
  High high_;
};

/// How `compared_with` compares.
enum class comparison : std::uint8_t { differ, less, at_most, greater, at_least };

/// A predicate of `subset`: the value compares like this with another one.
template <comparison How, class Operand>
class compared_with {
 public:
  static constexpr comparison how = How;

  explicit compared_with(Operand other) : other_(std::move(other)) {}

  template <class Value>
    requires detail::comparable_operand<Value, Operand>
  [[nodiscard]] bool operator()(const Value& value) const {
    const std::partial_ordering is = detail::compare_operand(value, other_);
    return How == comparison::differ    ? is != 0
           : How == comparison::less    ? is < 0
           : How == comparison::at_most ? is <= 0
           : How == comparison::greater ? is > 0
                                        : is >= 0;
  }
  [[nodiscard]] std::string describe() const {
    constexpr std::string_view words[] = {"other than ", "less than ", "at most ", "greater than ",
                                          "at least "};
    return detail::text({words[static_cast<std::size_t>(How)], detail::operand_text(other_)});
  }
  [[nodiscard]] const Operand& other() const noexcept { return other_; }

 private:
  Operand other_;
};

namespace detail {
template <comparison How, operand T>
[[nodiscard]] compared_with<How, kept_operand<T>> compared(const T& value) {
  return compared_with<How, kept_operand<T>>(kept_operand<T>(value));
}
}  // namespace detail

/// Predicates for `subset`: `equals(3)`, `one_of({"cat", "dog"})`, `between(0.5, 1)` with both ends included.
/// Integers are compared as integers, and with a floating-point number as doubles; texts byte by byte. NaN
/// equals nothing.
template <detail::operand T>
[[nodiscard]] one_of_these<detail::kept_operand<T>> equals(const T& value) {
  return one_of_these<detail::kept_operand<T>>({detail::kept_operand<T>(value)});
}
template <detail::operand T>
[[nodiscard]] one_of_these<detail::kept_operand<T>> one_of(std::initializer_list<T> values) {
  return one_of_these<detail::kept_operand<T>>({values.begin(), values.end()});
}
template <detail::operand T>
[[nodiscard]] one_of_these<detail::kept_operand<T>> one_of(const std::vector<T>& values) {
  return one_of_these<detail::kept_operand<T>>({values.begin(), values.end()});
}
template <detail::operand T, detail::operand U>
[[nodiscard]] between_these<detail::kept_operand<T>, detail::kept_operand<U>> between(const T& low,
                                                                                      const U& high) {
  return {detail::kept_operand<T>(low), detail::kept_operand<U>(high)};
}
/// For `subset`: values other than this one, NaN among them; less than it, and so on. Compare as `equals`.
[[nodiscard]] auto differs_from(const detail::operand auto& value) {
  return detail::compared<comparison::differ>(value);
}
[[nodiscard]] auto less_than(const detail::operand auto& value) {
  return detail::compared<comparison::less>(value);
}
[[nodiscard]] auto at_most(const detail::operand auto& value) {
  return detail::compared<comparison::at_most>(value);
}
[[nodiscard]] auto greater_than(const detail::operand auto& value) {
  return detail::compared<comparison::greater>(value);
}
[[nodiscard]] auto at_least(const detail::operand auto& value) {
  return detail::compared<comparison::at_least>(value);
}

/// The stage `subset(values, predicate)`.
class subset_stage {
 public:
  using penstock_part = order_tag;
  static constexpr std::string_view stage_name = "subset";
  static constexpr bool wants_places = true;

  /// `says` is the description.
  subset_stage(shared<const detail::position_list> kept, std::uint64_t dataset, std::string what,
               std::string says)
      : kept_(std::move(kept)),
        dataset_(dataset),
        mark_(kept_->fingerprint()),
        what_(std::move(what)),
        says_(std::move(says)) {}

  [[nodiscard]] detail::listed_order make(const order_input& in) const {
    detail::check_places(in, kept_->upstream(), dataset_, what_, stage_name);
    return {in, kept_};
  }
  /// The number of samples of the dataset for which the predicate holds.
  [[nodiscard]] std::uint64_t size() const noexcept { return kept_->size(); }
  [[nodiscard]] std::string describe() const { return says_; }
  void fingerprint(auto& h) const { h.add(stage_name, mark_); }

 private:
  shared<const detail::position_list> kept_;
  std::uint64_t dataset_, mark_;
  std::string what_, says_;
};

namespace detail {

/// The samples whose values satisfy the predicate.
[[nodiscard]] shared<const position_list> kept_samples(const sample_values auto& values, const auto& keep) {
  return shared<const position_list>(new const position_list(
      values.size(), [&](std::uint64_t i) { return static_cast<bool>(keep(values[i])); },
      [&](std::uint64_t i) { return same_until(values, i); }));
}

}  // namespace detail

namespace detail {
struct subset_fn {
  template <sample_values Values, class Predicate>
  [[nodiscard]] subset_stage operator()(const Values& values, const Predicate& keep) const {
    constexpr bool fits = std::predicate<const Predicate&, typename Values::value_type>;
    static_assert(
        fits,
        "penstock: subset's predicate must be callable with one of the values when const, and return "
        "true or false; numbers are compared with numbers and texts with texts");
    if constexpr (fits) {
      std::string says = "a function";
      if constexpr (requires { keep.describe(); }) says = keep.describe();
      std::string what = values.describe();
      std::string line = detail::text({"subset(", what, ": ", says, ")"});
      return {detail::kept_samples(values, keep), values.dataset(), std::move(what), std::move(line)};
    } else {
      return {nullptr, 0, {}, {}};  // so that this is the only error
    }
  }
};
}  // namespace detail

/// Keeps the samples whose values satisfy a predicate, in their original order: `subset(labels,
/// one_of({"cat", "dog"}))`, `subset(lengths, between(16, 512))`, or a function of your own.
///
/// In: values, one per sample of the dataset: a `derived_index`, `shard_names(source)`, or a `sample_list`.
/// Out: positions. The predicate is called once per sample when you write `subset(...)`, not during the run
/// (once per run of equal values if the values can tell, as names of shards can). May appear wherever samples
/// are the same in every epoch: after the source, `take`, `skip`, `split`, `fold`, `split_by_key` or another
/// `subset`. Shard boundaries are kept.
///
/// A sequencer; keeps every guarantee: unlike `filter`, which tests each sample once it has been made, it
/// knows how many there are. Uses 4 bytes for each kept sample (8 from 2^32 samples), or 16 for each run of
/// neighbours if that is less. A position costs a look-up; with runs, one that is logarithmic in their
/// number.
///
/// A state from a different predicate that keeps the same samples fits.
/// Throws `error(errc::argument)` when the plan is opened: for values of a different dataset or a different
/// number of samples, and if positions change from epoch to epoch. Thread-safe.
///
///     auto label = derive(source, "label", [](const auto& s) { return label_of(s); }, "derived");
///     auto loader = source | subset(label, one_of({3, 5})) | shuffle(seed(7)) | batch(256);
inline constexpr detail::subset_fn subset{};

}  // namespace penstock::inline v0_1

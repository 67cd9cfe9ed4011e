// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_seed.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/source/concepts.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

/// A function that makes samples: it is called as const, from many threads, with an index and optionally a
/// random number generator.
template <class F>
concept sample_generator = std::copy_constructible<F> && (std::invocable<const F&, std::uint64_t> ||
                                                          std::invocable<const F&, std::uint64_t, rng&>);

namespace detail {

/// Checks where shards begin, and shares it; null if there are none.
[[nodiscard]] inline shared<const std::vector<std::uint64_t>> shared_starts(
    std::string_view who, std::uint64_t size, std::vector<std::uint64_t> starts) {
  if (starts.empty()) return nullptr;
  if (starts.size() < 2 || starts.front() != 0 || starts.back() != size ||
      !std::is_sorted(starts.begin(), starts.end()))
    throw error(errc::argument,
                {who, ": the starts of shards must ascend from 0 to the number of samples, ", size});
  return shared<const std::vector<std::uint64_t>>(new const std::vector<std::uint64_t>(std::move(starts)));
}

}  // namespace detail

/// The source that `generated` makes.
template <sample_generator F>
class generated_source : public opens_as_plan<generated_source<F>> {
  static constexpr bool takes_rng = std::invocable<const F&, std::uint64_t, rng&>;
  static auto call(const F& f, std::uint64_t seed, std::uint64_t index) -> decltype(auto) {
    if constexpr (takes_rng) {
      // epoch 0 always: a dataset is the same in every epoch
      rng random(seed, 0, index, stream);
      return f(index, random);
    } else {
      return f(index);
    }
  }
  static constexpr std::uint64_t stream = 0x67656e;

 public:
  using penstock_part = source_tag;
  using element = std::remove_cvref_t<decltype(call(std::declval<const F&>(), 0, 0))>;
  static constexpr std::string_view source_name = "generated";

  class reader {
   public:
    struct worker {};
    static constexpr reader_traits traits = {.calls_functions = true};
    explicit reader(const generated_source& source) : f_(source.f_), seed_(source.seed_) {}

    template <class Sink>
    void evaluate(position p, worker&, Sink&& sink) const {
      sink(call(f_, seed_, p.index));
    }
    [[nodiscard]] std::string key(std::uint64_t index) const { return std::to_string(index); }

   private:
    F f_;
    std::uint64_t seed_;
  };

  generated_source(std::uint64_t size, F f, std::vector<std::uint64_t> starts = {}, std::uint64_t seed = 0)
      : f_(std::move(f)),
        starts_(detail::shared_starts(source_name, size, std::move(starts))),
        size_(size),
        seed_(seed) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return starts_; }
  [[nodiscard]] std::string describe() const { return detail::text({"generated(", size_, ")"}); }
  /// Covers the size, the seed and the shards. It cannot cover the function: when the function changes,
  /// change the seed.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    penstock::fingerprint sum;
    sum.add(source_name, size_, seed_);
    if (starts_ != nullptr)
      for (const std::uint64_t start : *starts_) sum.add(start);
    return sum.value();
  }
  [[nodiscard]] reader connect() const { return reader(*this); }

 private:
  F f_;
  shared<const std::vector<std::uint64_t>> starts_;
  std::uint64_t size_;
  std::uint64_t seed_;
};

/// The function object behind `generated`.
struct generated_fn {
  template <class F>
  [[nodiscard]] auto operator()(any_count size, F f, std::vector<std::uint64_t> starts = {},
                                any_seed seed = seed_stage{}) const {
    if constexpr (sample_generator<F>) {
      return generated_source<F>(size.of("generated"), std::move(f), std::move(starts), seed.value());
    } else {
      static_assert(sample_generator<F>,
                    "penstock: generated(n, f): f must be callable as const with f(index) or f(index, rng&), "
                    "since many threads share it; "
                    "a mutable lambda is not");
      const auto nothing = [](std::uint64_t) { return 0; };
      return generated_source<decltype(nothing)>(size.of("generated"), nothing);
    }
  }
};

/// A dataset made by a function: sample i is `f(i)`, or `f(i, random)` with random numbers that depend on i
/// only.
///
/// In: the number of samples; a function of a `std::uint64_t` (and an `rng&`), const-callable, whose result
/// is the sample (it may be unfinished); optionally where shards begin (ascending, from 0 to n) and a seed
/// for the random numbers.
/// Kind: an indexed source; indexed, deterministic, resumable, elastic and lockstep, as long as f depends
/// on nothing but its arguments.
/// Cost per sample: the cost of f, which is inlined; no allocation. Threads: all workers call f at once.
/// Throws `errc::argument` for starts that do not fit; f's exceptions pass through.
///
///     auto squares = generated(1'000, [](std::uint64_t i) { return i * i; });
///     auto noise = generated(1'000, [](std::uint64_t, rng& r) { return r.uniform(-1, 1); });
inline constexpr generated_fn generated{};

}  // namespace penstock::inline v0_1

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/joined/joined_plans.hpp>
#include <penstock/storage/concepts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// `firsts`: where each source begins, and last the size of all. `starts`: where each of their shards begins,
/// and last the size.
struct concat_starts {
  std::vector<std::uint64_t> firsts{0}, starts{0};
};
[[nodiscard, gnu::cold]] concat_starts starts_of_joined(const std::vector<order_input>& sources);

}  // namespace detail

/// The source that `concat` makes: `Plans` are detail::joined_plans or detail::listed_plans.
template <class Plans>
class concat_source : public opens_as_plan<concat_source<Plans>> {
  using numbers = std::vector<std::uint64_t>;

 public:
  using penstock_part = source_tag;
  using element = typename Plans::element;
  static constexpr std::string_view source_name = "concat";
  static constexpr bool renumbers = Plans::renumbers;
  static constexpr bool one_at_a_time = Plans::one_at_a_time;
  static constexpr bool varies_by_epoch = Plans::varies;
  static consteval guarantee_set loses(place) { return Plans::lost; }

  class reader {
    using inner = typename Plans::readers;

   public:
    static constexpr bool takes_fetched = Plans::fetch;
    static constexpr bool has_latency = Plans::latent;
    using worker = typename inner::worker;
    using scout = typename inner::scout;

    reader(const Plans& plans, shared<const numbers> firsts, const projection& used)
        : firsts_(std::move(firsts)), readers_(new const inner(plans, source_name, used)) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const std::size_t k = source_at(p.index);
      readers_->evaluate(k, within(p, k), w, std::forward<Sink>(sink));
    }
    [[nodiscard]] std::string key(position p) const {
      const std::size_t k = source_at(p.index);
      return readers_->key(k, within(p, k));
    }
    [[nodiscard]] std::string url(position p) const
      requires Plans::knows_urls
    {
      const std::size_t k = source_at(p.index);
      return readers_->url(k, within(p, k));
    }
    /// The ranges that the sample's source reports.
    template <class Sink>
      requires Plans::wants_hints
    void ranges(position p, scout& s, Sink&& sink) const {
      const std::size_t k = source_at(p.index);
      readers_->ranges(k, within(p, k), s, sink);
    }
    void cancel_reads() const noexcept { readers_->cancel_reads(); }
    [[nodiscard]] kept_counters kept() const { return readers_->kept(); }
    [[nodiscard]] session_report report() const { return readers_->report(); }
    [[nodiscard]] std::uint64_t bytes_per_sample() const {
      const std::uint64_t all = firsts_->back();
      double bytes = 0;
      for (std::size_t k = 0; k + 1 < firsts_->size() && all != 0; ++k)
        bytes += static_cast<double>(readers_->bytes_per_sample(k)) *
                 static_cast<double>((*firsts_)[k + 1] - (*firsts_)[k]) / static_cast<double>(all);
      return static_cast<std::uint64_t>(bytes);
    }

   private:
    [[nodiscard]] std::size_t source_at(std::uint64_t index) const noexcept {
      return static_cast<std::size_t>(std::upper_bound(firsts_->begin() + 1, firsts_->end() - 1, index) -
                                      firsts_->begin() - 1);
    }
    [[nodiscard]] position within(position p, std::size_t k) const noexcept {
      return {p.epoch, p.index - (*firsts_)[k]};
    }

    shared<const numbers> firsts_;
    shared<const inner> readers_;
  };

  explicit concat_source(Plans plans) : plans_(std::move(plans)) {
    std::vector<order_input> each;
    plans_.each([&](std::size_t, const auto& p) { each.push_back(detail::output_of_orders(p)); });
    detail::concat_starts found = detail::starts_of_joined(each);
    firsts_.reset(new const numbers(std::move(found.firsts)));
    starts_.reset(new const numbers(std::move(found.starts)));
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return firsts_->back(); }
  /// The shards of all sources, one after another; a source without shards counts as one.
  [[nodiscard]] shared<const numbers> starts() const noexcept { return starts_; }
  [[nodiscard]] std::string describe() const { return detail::describe_joined(source_name, "", plans_); }
  [[nodiscard]] std::uint64_t fingerprint() const { return detail::fingerprint_of_data(source_name, plans_); }
  [[nodiscard]] std::uint64_t sequence_fingerprint() const {
    return detail::fingerprint_of_sequences(plans_);
  }
  /// Covers the random stages of all sources.
  [[nodiscard]] std::uint64_t random_fingerprint() const {
    return detail::fingerprint_of_random_stages(plans_);
  }
  [[nodiscard]] reader connect(const projection& used = {}) const { return {plans_, firsts_, used}; }

 private:
  Plans plans_;
  shared<const numbers> firsts_, starts_;  // firsts_: where each source begins, and the size
};

namespace detail {

struct concat_fn {
  template <class... Args>
  [[nodiscard]] auto operator()(const Args&... args) const {
    using wrong = typename wrong_join<Args...>::type;
    if constexpr ((part_of_kind<Args, poison_tag> || ...)) {
      return ill_formed{};
    } else if constexpr (!is_right<wrong>) {
      wrong::template explain<void>();
      return ill_formed{};
    } else {
      using facts = elements_of<pack<plan_for<Args>...>>;
      if constexpr (!facts::same) {
        mistakes::elements_differ::explain<arrives_here<typename facts::type>>();
        return ill_formed{};
      } else {
        return concat_source(joined(make_pack(as_plan(args)...)));
      }
    }
  }
  template <class T>
  [[nodiscard]] auto operator()(const std::vector<T>& sources) const {
    using wrong = typename wrong_join<T>::type;
    if constexpr (!is_right<wrong>) {
      wrong::template explain<void>();
      return ill_formed{};
    } else {
      return concat_source(listed(sources));
    }
  }
};

}  // namespace detail

/// Joins sources end to end: `concat(a, b, ...)`. The result is a source.
///
/// In: sources, each alone or with orders and value stages, or one `std::vector` of sources of one type; the
/// elements must be of one type. Epoch e of the result is epoch e of the first source, followed by epoch e of
/// the second, and so on.
/// Kind: an indexed source; it keeps every guarantee that all the sources keep. Its shards are those of the
/// sources, in order, so a windowed shuffle after it works; a source without shards counts as one shard. Cost
/// per sample: a binary search over the sources, and the cost of the source; no allocation.
/// Keys are those of the sources, unchanged.
/// Threads: any number at once. An error from a source says which source, numbered from 0. Throws
/// `errc::argument` for an endless source.
///
///     auto loader = concat(webdataset(spring), webdataset(summer)) | decode<field<"cls", integer>> |
///                   shuffle(seed(7), window(16)) | batch(256);
inline constexpr detail::concat_fn concat{};

namespace detail {

inline concat_starts starts_of_joined(const std::vector<order_input>& sources) {
  constexpr std::uint64_t maximum = std::uint64_t{1} << 62;
  concat_starts made;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    const order_input& each = sources[k];
    const std::uint64_t first = made.firsts.back();
    if (each.size > maximum - first) {
      throw error(errc::argument,
                  {"source ", k,
                   " of concat is endless, or exceeds 2^62 samples together with those before it; write "
                   "repeat() after concat"})
          .in_stage("concat");
    }
    made.firsts.push_back(first + each.size);
    if (each.starts) {
      for (std::size_t i = 1; i < each.starts->size(); ++i) made.starts.push_back(first + (*each.starts)[i]);
    } else if (each.size != 0) {
      made.starts.push_back(first + each.size);
    }
  }
  if (made.starts.size() == 1) made.starts.push_back(0);
  return made;
}

}  // namespace detail

}  // namespace penstock::inline v0_1

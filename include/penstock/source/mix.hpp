// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/order/mixture.hpp>
#include <penstock/order/weights.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/joined/joined_plans.hpp>
#include <penstock/storage/concepts.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// The source that `mix` makes: `Plans` are detail::joined_plans or detail::listed_plans.
template <class Plans>
class mix_source : public opens_as_plan<mix_source<Plans>> {
 public:
  using penstock_part = source_tag;
  using element = typename Plans::element;
  static constexpr std::string_view source_name = "mix";
  static constexpr bool renumbers = true;
  static constexpr bool one_at_a_time = Plans::one_at_a_time;
  static constexpr bool varies_by_epoch = true;
  static consteval guarantee_set loses(place) { return Plans::lost; }

  class reader {
    using inner = typename Plans::readers;

   public:
    static constexpr bool takes_fetched = Plans::fetch;
    static constexpr bool has_latency = Plans::latent;
    struct worker {
      mixture::cursor place;
      typename inner::worker each;
      const fetched_sample* fetched = nullptr;
    };
    struct scout {
      mixture::cursor place;
      typename inner::scout each;
    };

    reader(const Plans& plans, mixture order, const projection& used)
        : order_(std::move(order)), readers_(new const inner(plans, source_name, used)) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      const mixture::place found = order_.at(p, w.place);
      w.each.fetched = w.fetched;
      readers_->evaluate(found.source, found.at, w.each, std::forward<Sink>(sink));
    }
    [[nodiscard]] std::string key(position p) const {
      const mixture::place found = order_.at(p);
      return readers_->key(found.source, found.at);
    }
    [[nodiscard]] std::string url(position p) const
      requires Plans::knows_urls
    {
      const mixture::place found = order_.at(p);
      return readers_->url(found.source, found.at);
    }
    /// The ranges that the sample's source reports.
    template <class Sink>
      requires Plans::wants_hints
    void ranges(position p, scout& s, Sink&& sink) const {
      const mixture::place found = order_.at(p, s.place);
      readers_->ranges(found.source, found.at, s.each, sink);
    }
    void cancel_reads() const noexcept { readers_->cancel_reads(); }
    [[nodiscard]] kept_counters kept() const { return readers_->kept(); }
    [[nodiscard]] session_report report() const { return readers_->report(); }
    /// The mean over an epoch, or over its first million samples.
    [[nodiscard]] std::uint64_t bytes_per_sample() const {
      const std::uint64_t samples = std::min(order_.size(), std::uint64_t{1} << 20);
      std::uint64_t bytes = 0;
      for (std::size_t k = 0; k < order_.sources(); ++k) {
        bytes +=
            readers_->bytes_per_sample(k) / samples * order_.share(static_cast<std::uint32_t>(k), samples);
        bytes += readers_->bytes_per_sample(k) % samples *
                 order_.share(static_cast<std::uint32_t>(k), samples) / samples;
      }
      return bytes;
    }

   private:
    mixture order_;
    shared<const inner> readers_;
  };

  mix_source(Plans plans, const detail::mixing_rule& rule, const detail::mixing_options& options)
      : plans_(std::move(plans)),
        order_(detail::sizes_of(plans_), rule, options),
        how_(rule.describe() + options.describe()) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return order_.size(); }
  /// Null: neighbouring samples come from different sources.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return nullptr; }
  [[nodiscard]] std::string describe() const { return detail::describe_joined(source_name, how_, plans_); }
  /// Covers the data of all sources.
  [[nodiscard]] std::uint64_t fingerprint() const { return detail::fingerprint_of_data(source_name, plans_); }
  /// Covers the weights or schedule, the policy and seed, and the orders and seeds of the sources: a state is
  /// refused if any of them differs.
  [[nodiscard]] std::uint64_t sequence_fingerprint() const {
    penstock::fingerprint h;
    order_.fingerprint(h);
    h.add(detail::fingerprint_of_sequences(plans_));
    return h.value();
  }
  /// Covers the random stages of all sources.
  [[nodiscard]] std::uint64_t random_fingerprint() const {
    return detail::fingerprint_of_random_stages(plans_);
  }
  /// The sequence in words, without the sources: for the message when a state is refused.
  [[nodiscard]] std::string sequence_text() const { return how_; }
  [[nodiscard]] reader connect(const projection& used = {}) const { return {plans_, order_, used}; }
  /// Maps each position to a source and a sample, and back.
  [[nodiscard]] const mixture& order() const noexcept { return order_; }

 private:
  Plans plans_;
  mixture order_;
  std::string how_;
};

namespace mistakes {

struct mix_without_weights {
  using penstock_mistake = about_expression_tag;
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: mix begins with what each source gives: weights{...}, weight_schedule{...}, "
                  "proportions{...}, repeats{...} or choose{...}, and then the sources");
  }
};
struct mix_list_and_more {
  using penstock_mistake = about_expression_tag;
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: a std::vector is all the sources of a mix, and only a stopping policy, "
                  "samples_per_epoch(n) and seed(n) stand behind it; put every source into it");
  }
};
struct mix_option_twice {
  using penstock_mistake = about_expression_tag;
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: mix takes one stopping policy, one samples_per_epoch(n) and one seed(n), and "
                  "one of them is there twice; write one");
  }
};

}  // namespace mistakes

namespace detail {

template <class T>
inline constexpr bool is_mixing_option =
    std::is_same_v<T, stopping> || std::is_same_v<T, samples_per_epoch> || seed_annotation<T>;
/// The plans among the arguments of a mix: all except its options.
template <class T>
[[nodiscard]] auto plans_among(const T& x) {
  if constexpr (is_mixing_option<T>)
    return pack<>{};
  else
    return make_pack(as_plan(x));
}
/// Whether an option is given twice; only one of the two would take effect.
template <class... Ts>
inline constexpr bool repeats_a_mixing_option = (0 + ... + int{std::is_same_v<Ts, stopping>}) > 1 ||
                                                (0 + ... + int{std::is_same_v<Ts, samples_per_epoch>}) > 1 ||
                                                (0 + ... + int{seed_annotation<Ts>}) > 1;
template <class... Ts>
using wrong_options =
    std::conditional_t<repeats_a_mixing_option<Ts...>, mistakes::mix_option_twice, mistakes::none>;
/// The mistake among the arguments of a mix. If the sources are a vector (`wrong_list_mix`), only options may
/// follow.
template <class... Ts>
struct wrong_mix
    : first_mistake<typename wrong_join_of_packs<pack<>, pack_unless<is_mixing_option<Ts>, Ts>...>::type,
                    wrong_options<Ts...>> {};
template <class Source, class... Options>
struct wrong_list_mix
    : first_mistake<
          decltype(wrong_to_join<Source>()),
          std::conditional_t<(is_mixing_option<Options> && ...), mistakes::none, mistakes::mix_list_and_more>,
          wrong_options<Options...>> {};

inline void take_option(mixing_options& options, stopping policy) { options.stop = policy; }
inline void take_option(mixing_options& options, samples_per_epoch n) { options.samples = n.count; }
template <class T>
void take_option(mixing_options& options, const T& x) {
  if constexpr (seed_annotation<T>) options.seed = x.plan_seed();
}

struct mix_fn {
  template <class Rule, class... Args>
  [[nodiscard]] auto operator()(const Rule& rule, const Args&... args) const {
    if constexpr (!std::convertible_to<const Rule&, mixing_rule>) {
      mistakes::mix_without_weights::explain<Rule>();
      return ill_formed{};
    } else if constexpr ((part_of_kind<Args, poison_tag> || ...)) {
      return ill_formed{};
    } else {
      using wrong = typename wrong_mix<Args...>::type;
      if constexpr (!is_right<wrong>) {
        wrong::template explain<void>();
        return ill_formed{};
      } else {
        auto plans = join_all(plans_among(args)...);
        using facts = elements_of<decltype(plans)>;
        if constexpr (!facts::same) {
          mistakes::elements_differ::explain<arrives_here<typename facts::type>>();
          return ill_formed{};
        } else {
          return make(joined(plans), rule, args...);
        }
      }
    }
  }
  template <class Rule, class T, class... Options>
  [[nodiscard]] auto operator()(const Rule& rule, const std::vector<T>& sources,
                                const Options&... options) const {
    using wrong = typename wrong_list_mix<T, Options...>::type;
    if constexpr (!std::convertible_to<const Rule&, mixing_rule>) {
      mistakes::mix_without_weights::explain<Rule>();
      return ill_formed{};
    } else if constexpr ((part_of_kind<Options, poison_tag> || ...)) {
      return ill_formed{};
    } else if constexpr (!is_right<wrong>) {
      wrong::template explain<void>();
      return ill_formed{};
    } else {
      return make(listed(sources), rule, options...);
    }
  }

 private:
  template <class Plans, class... Args>
  [[nodiscard]] static auto make(Plans plans, const mixing_rule& rule, const Args&... args) {
    mixing_options options;
    (take_option(options, args), ...);
    return mix_source<Plans>(std::move(plans), rule, options);
  }
};

}  // namespace detail

/// Mixes sources: `mix(weights{0.7, 0.2, 0.1}, a, b, c)`. The result is a source.
///
/// In: how much each source contributes (`weights`, `weight_schedule`, `proportions`, `repeats`, `choose`);
/// then the sources, each alone or with orders and value stages (`webdataset(x) | shuffle(seed(7)) |
/// map(f)`), or one `std::vector` of sources of one type; among them, anywhere, a `stopping` policy (by
/// default first_exhausted), `samples_per_epoch(n)` and `seed(n)`. The elements must be of one type.
/// Kind: an indexed source; it keeps every guarantee that all the sources keep. The sample at each position
/// is computed by arithmetic (see `mixture`): at the end of every block (1,024 samples or more) each source
/// has contributed its exact share to within one sample, in random order inside the block. The weights at a
/// position follow from the position, so a state needs nothing more, and a state with other weights or
/// another schedule is refused. A source's own orders and random numbers see its own epochs and positions, as
/// if it were read alone; to give it a seed, write seed(n) inside it. The mix has no shards: put windows into
/// the sources, before they are mixed.
/// Cost per sample: about two positions of `shuffle(seed(7))`, and the cost of the source; no allocation.
/// Keys are those of the sources, unchanged. Threads: any number at once. An error from a source says which
/// source, numbered from 0.
/// Throws `errc::argument` for weights that are negative, 0 or not a number, and for anything `mixture`
/// refuses.
///
///     auto loader = mix(weights{0.7, 0.3}, webdataset(web) | shuffle(seed(1), window(16)), webdataset(books) | shuffle(seed(2)),
///                       samples_per_epoch(1'000'000)) | decode<field<"cls", integer>> | shard(rank, world_size) | batch(256);
inline constexpr detail::mix_fn mix{};

}  // namespace penstock::inline v0_1

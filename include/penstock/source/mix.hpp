// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/mixture.hpp>
#include <penstock/order/weights.hpp>
#include <penstock/source/joined/joined_source.hpp>

namespace penstock::inline v0_1 {

namespace detail {

/// The samples of a mix.
class mixed_places {
 public:
  using cursor = mixture::cursor;

  template <class Plans>
  mixed_places(const Plans& plans, const mixing_rule& rule, const mixing_options& options)
      : order_(sizes_of(plans), rule, options) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return order_.size(); }
  /// Null: neighbouring samples come from different sources.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return nullptr; }
  [[nodiscard]] mixture::place at(position p, cursor& c) const { return order_.at(p, c); }
  /// An epoch, or its first million samples.
  [[nodiscard]] std::uint64_t whole() const noexcept {
    return std::min(order_.size(), std::uint64_t{1} << 20);
  }
  [[nodiscard]] std::uint64_t share(std::size_t k) const {
    return order_.share(static_cast<std::uint32_t>(k), whole());
  }
  [[nodiscard]] const mixture& order() const noexcept { return order_; }

 private:
  mixture order_;
};

}  // namespace detail

/// The source that `mix` makes: `Plans` are detail::joined_plans or detail::listed_plans.
template <class Plans>
class mix_source
    : public detail::joined_source<mix_source<Plans>, detail::joined_reader<Plans, detail::mixed_places>> {
  using joint = typename mix_source::joined_source;

 public:
  static constexpr std::string_view source_name = "mix";
  static constexpr bool renumbers = true;
  static constexpr bool varies_by_epoch = true;

  mix_source(Plans plans, const detail::mixing_rule& rule, const detail::mixing_options& options)
      : joint(std::move(plans), rule, options), how_(rule.describe() + options.describe()) {}

  [[nodiscard]] std::string describe() const { return this->describe_with(how_); }
  /// Covers the weights or schedule, the policy and seed, and the orders and seeds of the sources: a state is
  /// refused if any of them differs.
  [[nodiscard]] std::uint64_t sequence_fingerprint() const {
    penstock::fingerprint h;
    order().fingerprint(h);
    h.add(joint::sequence_fingerprint());
    return h.value();
  }
  /// The sequence in words, without the sources: for the message when a state is refused.
  [[nodiscard]] std::string sequence_text() const { return how_; }
  /// Maps each position to a source and a sample, and back.
  [[nodiscard]] const mixture& order() const noexcept { return this->places().order(); }

 private:
  std::string how_;
};

namespace mistakes {

struct mix_without_weights : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: mix begins with what each source gives: weights{...}, weight_schedule{...}, "
                  "proportions{...}, repeats{...} or choose{...}, and then the sources");
  }
};
struct mix_list_and_more : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: a std::vector is all the sources of a mix, and only a stopping policy, "
                  "samples_per_epoch(n) and seed(n) stand behind it; put every source into it");
  }
};
struct mix_option_twice : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: mix takes one stopping policy, one samples_per_epoch(n) and one seed(n), and "
                  "one of them is there twice; write one");
  }
};

}  // namespace mistakes

namespace detail {

template <class T>
inline constexpr bool is_mixing_option =
    std::is_same_v<T, stopping> || std::is_same_v<T, samples_per_epoch> || seed_annotation<T>;
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
    : first_mistake<
          typename wrong_join_of_packs<light_tuple<>, pack_unless<is_mixing_option<Ts>, Ts>...>::type,
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
      mistakes::mix_without_weights::explain(std::type_identity<Rule>{});
      return ill_formed{};
    } else {
      return unless_wrong<typename wrong_mix<Args...>::type>(
          [&rule](const auto&... given) {
            const auto plans =
                join_all(plan_unless<is_mixing_option<std::remove_cvref_t<decltype(given)>>>(given)...);
            using facts = elements_of<std::remove_const_t<decltype(plans)>>;
            if constexpr (!facts::same) {
              mistakes::elements_differ::explain(arrives_here<typename facts::type>{});
              return ill_formed{};
            } else {
              return make(joined(plans), rule, given...);
            }
          },
          args...);
    }
  }
  template <class Rule, class T, class... Options>
  [[nodiscard]] auto operator()(const Rule& rule, const std::vector<T>& sources,
                                const Options&... options) const {
    if constexpr (!std::convertible_to<const Rule&, mixing_rule>) {
      mistakes::mix_without_weights::explain(std::type_identity<Rule>{});
      return ill_formed{};
    } else {
      return unless_wrong<typename wrong_list_mix<T, Options...>::type>(
          [&rule](const auto& all, const auto&... given) { return make(listed(all), rule, given...); },
          sources, options...);
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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/joined/joined_source.hpp>

namespace penstock::inline v0_1 {

namespace detail {

/// `firsts`: where each source begins, and last the size of all. `starts`: where each of their shards begins,
/// and last the size.
struct concat_starts {
  std::vector<std::uint64_t> firsts{0}, starts{0};
};
[[nodiscard]] inline concat_starts starts_of_joined(const std::vector<order_input>& sources) {
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

/// The samples of a concat.
class places_in_turn {
  using numbers = std::vector<std::uint64_t>;

 public:
  using cursor = no_cursor;

  template <class Plans>
  explicit places_in_turn(const Plans& plans) {
    std::vector<order_input> each;
    plans.each([&](std::size_t, const auto& p) { each.push_back(output_of_orders(p)); });
    concat_starts found = starts_of_joined(each);
    firsts_.reset(new const numbers(std::move(found.firsts)));
    starts_.reset(new const numbers(std::move(found.starts)));
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return firsts_->back(); }
  /// The shards of all sources, one after another; a source without shards counts as one.
  [[nodiscard]] shared<const numbers> starts() const noexcept { return starts_; }
  [[nodiscard]] joined_place at(position p, cursor&) const noexcept {
    const auto next = std::upper_bound(firsts_->begin() + 1, firsts_->end() - 1, p.index);
    return {static_cast<std::size_t>(next - firsts_->begin() - 1), {p.epoch, p.index - next[-1]}};
  }
  [[nodiscard]] std::uint64_t whole() const noexcept { return size(); }
  [[nodiscard]] std::uint64_t share(std::size_t k) const noexcept {
    return (*firsts_)[k + 1] - (*firsts_)[k];
  }

 private:
  shared<const numbers> firsts_, starts_;  // firsts_: where each source begins, and the size
};

}  // namespace detail

/// The source that `concat` makes: `Plans` are detail::joined_plans or detail::listed_plans.
template <class Plans>
class concat_source : public detail::joined_source<concat_source<Plans>,
                                                   detail::joined_reader<Plans, detail::places_in_turn>> {
 public:
  static constexpr std::string_view source_name = "concat";

  explicit concat_source(Plans plans) : concat_source::joined_source(std::move(plans)) {}
};

namespace detail {

struct concat_fn {
  template <class... Args>
  [[nodiscard]] auto operator()(const Args&... args) const {
    return unless_wrong<typename wrong_join<Args...>::type>(
        [](const auto&... given) {
          const auto plans = make_light_tuple(as_plan(given)...);
          using facts = elements_of<std::remove_const_t<decltype(plans)>>;
          if constexpr (!facts::same) {
            mistakes::elements_differ::explain(arrives_here<typename facts::type>{});
            return ill_formed{};
          } else {
            return concat_source(joined(plans));
          }
        },
        args...);
  }
  template <class T>
  [[nodiscard]] auto operator()(const std::vector<T>& sources) const {
    return unless_wrong<typename wrong_join<T>::type>(
        [](const auto& given) { return concat_source(listed(given)); }, sources);
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

}  // namespace penstock::inline v0_1

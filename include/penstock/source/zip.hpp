// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/name.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/core/position.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/core/record.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/joined/joined_plans.hpp>
#include <penstock/storage/concepts.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace mistakes {

struct zip_needs_names {
  using penstock_mistake = about_element_tag;
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: zip joins records, and one of these elements has no field names; give one "
                  "name for each source, as in zip<\"image\", \"label\">(images, labels)");
  }
};
struct zip_same_field {
  using penstock_mistake = about_expression_tag;
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: zip joins the fields of all its sources in one record, and two of them have "
                  "one name; give one name for each source, as in zip<\"left\", \"right\">(a, b)");
  }
};
struct zip_name_count {
  using penstock_mistake = about_expression_tag;
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: zip<...> takes one name for each source, or none where all elements are "
                  "records");
  }
};

}  // namespace mistakes

/// Option of `zip`: end with the shortest source.
struct shortest_option {};
inline constexpr shortest_option shortest{};

namespace detail {

/// The type of a value in a zipped record: a view for texts and vectors, valid as long as they live;
/// otherwise the value's own.
template <class T>
struct zipped_value {
  using type = T;
};
template <>
struct zipped_value<std::string> {
  using type = std::string_view;
};
template <class T, class A>
  requires(!std::is_same_v<T, bool>)
struct zipped_value<std::vector<T, A>> {
  using type = std::span<const T>;
};
template <class T>
using zipped = typename zipped_value<std::remove_cvref_t<T>>::type;

template <class Element>
struct zipped_fields {
  using type = pack<>;
};
template <class... Fields>
struct zipped_fields<record<Fields...>> {
  using type = pack<basic_field<typename Fields::name_type, zipped<typename Fields::type>>...>;
};

template <class... Packs>
struct record_of_packs;
template <class... Fields>
struct record_of_packs<pack<Fields...>> {
  using type = record<Fields...>;
  static constexpr bool differ = names_differ<Fields...>();
};
template <class... As, class... Bs, class... Rest>
struct record_of_packs<pack<As...>, pack<Bs...>, Rest...> : record_of_packs<pack<As..., Bs...>, Rest...> {};

/// The number of samples; different sizes are an error unless `to_the_shortest`.
[[nodiscard, gnu::cold]] std::uint64_t zipped_size(const std::vector<std::uint64_t>& sizes,
                                                   bool to_the_shortest);

/// The record that the elements form: all their fields, or one field for each element.
template <class Names, class... Elements>
struct zipped_record;
template <class... Elements>
struct zipped_record<pack<>, Elements...> : record_of_packs<typename zipped_fields<Elements>::type...> {
  using made = typename record_of_packs<typename zipped_fields<Elements>::type...>::type;

  static constexpr made join(const Elements&... elements) { return step<made>(std::tuple<>(), elements...); }
  /// The fields used of each element, given those used of the record.
  static constexpr std::array<projection, sizeof...(Elements)> used_of_each(const projection& used) {
    return {(void(sizeof(Elements)), used)...};
  }

 private:
  template <class Made, class Done>
  static constexpr Made step(const Done& done) {
    return std::apply([](const auto&... values) { return Made(values...); }, done);
  }
  template <class Made, class Done, class First, class... Rest>
  static constexpr Made step(const Done& done, const First& first, const Rest&... rest) {
    return step<Made>(std::tuple_cat(done, first.values()), rest...);
  }
};
template <class... Names, class... Elements>
  requires(sizeof...(Names) == sizeof...(Elements) && sizeof...(Names) != 0)
struct zipped_record<pack<Names...>, Elements...> {
  using made = record<basic_field<Names, zipped<Elements>>...>;
  static constexpr bool differ = names_differ<basic_field<Names, int>...>();
  static constexpr made join(const Elements&... elements) { return made(elements...); }
  static constexpr std::array<projection, sizeof...(Elements)> used_of_each(const projection& used) {
    return {(used.uses(Names::value) ? projection() : projection::none())...};
  }
};

}  // namespace detail

/// The source that `zip` makes; `Names` is a pack of names, empty if records are joined.
template <class Names, class... Plans>
class zip_source : public opens_as_plan<zip_source<Names, Plans...>> {
  using plans_type = detail::joined_plans<Plans...>;
  using joint = detail::zipped_record<Names, std::remove_cvref_t<typename Plans::element>...>;

 public:
  using penstock_part = source_tag;
  using element = typename joint::made;
  static constexpr std::string_view source_name = "zip";
  static constexpr bool renumbers = plans_type::renumbers;
  static constexpr bool one_at_a_time = plans_type::one_at_a_time;
  static constexpr bool varies_by_epoch = plans_type::varies;
  static consteval guarantee_set loses(place) { return plans_type::lost; }

  class reader {
    using inner = typename plans_type::readers;

   public:
    static constexpr bool takes_fetched = plans_type::fetch;
    static constexpr bool has_latency = plans_type::latent;
    using worker = typename inner::worker;
    using scout = typename inner::scout;

    reader(const plans_type& plans, const projection& used)
        : readers_(new const inner(plans, source_name, joint::used_of_each(used))) {}

    template <class Sink>
    void evaluate(position p, worker& w, Sink&& sink) const {
      from_source<0>(p, w, sink);
    }
    /// The shard of the first source's sample.
    [[nodiscard]] std::string key(position p) const { return readers_->key(0, p); }
    [[nodiscard]] std::string url(position p) const
      requires(plans_type::knows_urls)
    {
      return readers_->url(0, p);
    }
    /// The ranges that all the sources report.
    template <class Sink>
      requires(plans_type::wants_hints)
    void ranges(position p, scout& s, Sink&& sink) const {
      for (std::size_t k = 0; k < sizeof...(Plans); ++k) readers_->ranges(k, p, s, sink);
    }
    void cancel_reads() const noexcept { readers_->cancel_reads(); }
    [[nodiscard]] kept_counters kept() const { return readers_->kept(); }
    [[nodiscard]] session_report report() const { return readers_->report(); }
    [[nodiscard]] std::uint64_t bytes_per_sample() const {
      std::uint64_t bytes = 0;
      for (std::size_t k = 0; k < sizeof...(Plans); ++k) bytes += readers_->bytes_per_sample(k);
      return bytes;
    }

   private:
    /// The enclosing calls hold the values of the sources before this one.
    template <std::size_t I, class Sink, class... Values>
    void from_source(position p, worker& w, Sink& sink, const Values&... values) const {
      if constexpr (I == sizeof...(Plans)) {
        sink(joint::join(values...));
      } else {
        detail::at<I>(w).fetched = w.fetched;
        readers_->template get<I>().evaluate(p, detail::at<I>(w), [&](const auto& value) {
          from_source<I + 1>(p, w, sink, values..., value);
        });
      }
    }

    shared<const inner> readers_;
  };

  zip_source(plans_type plans, bool to_the_shortest) : plans_(std::move(plans)) {
    size_ = detail::zipped_size(detail::sizes_of(plans_), to_the_shortest);
    plans_.each([this](std::size_t, const auto& p) {
      const order_input each = detail::output_of_orders(p);
      if (!starts_ && each.starts && each.size == size_) starts_ = each.starts;
    });
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// The shards of the first source that has shards and is used to its end.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return starts_; }
  [[nodiscard]] std::string describe() const { return detail::describe_joined(source_name, "", plans_); }
  [[nodiscard]] std::uint64_t fingerprint() const { return detail::fingerprint_of_data(source_name, plans_); }
  [[nodiscard]] std::uint64_t sequence_fingerprint() const {
    return detail::fingerprint_of_sequences(plans_);
  }
  /// Covers the random stages of all sources.
  [[nodiscard]] std::uint64_t random_fingerprint() const {
    return detail::fingerprint_of_random_stages(plans_);
  }
  [[nodiscard]] reader connect(const projection& used = {}) const { return reader(plans_, used); }

 private:
  plans_type plans_;
  std::uint64_t size_ = 0;
  shared<const std::vector<std::uint64_t>> starts_;
};

namespace detail {

template <class Names, class... Plans>
[[nodiscard]] auto zip_plans(pack<Plans...> plans, bool to_the_shortest) {
  if constexpr (Names::size != 0 && Names::size != sizeof...(Plans)) {
    mistakes::zip_name_count::explain<Names>();
    return ill_formed{};
  } else if constexpr (Names::size == 0 && !(any_record<typename Plans::element> && ...)) {
    mistakes::zip_needs_names::explain<
        arrives_here<elements<std::remove_cvref_t<typename Plans::element>...>>>();
    return ill_formed{};
  } else if constexpr (!zipped_record<Names, std::remove_cvref_t<typename Plans::element>...>::differ) {
    mistakes::zip_same_field::explain<Names>();
    return ill_formed{};
  } else {
    return zip_source<Names, Plans...>(joined_plans<Plans...>(std::move(plans)), to_the_shortest);
  }
}
template <class T>
inline constexpr bool is_zip_option = std::is_same_v<T, shortest_option>;
template <class T>
[[nodiscard]] auto zipped_plan(const T& x) {
  if constexpr (is_zip_option<T>)
    return pack<>{};
  else
    return make_pack(as_plan(x));
}

}  // namespace detail

/// Joins the samples that several sources have at a position into one record: `zip(a, b)`, or
/// `zip<"image", "label">(images, labels)`. The result is a source.
///
/// In: sources, each alone or with orders and value stages; `shortest` if sizes may differ. With names,
/// one for each source, the record has a field for each source; without names, the elements must be
/// records, and the result has all their fields. Position i of epoch e joins position i of epoch e of
/// every source: give shuffled sources one common seed, or shuffle after zip.
/// Kind: an indexed source; it keeps every guarantee that all the sources keep. It has the shards of the
/// first source that has any.
/// Cost per sample: the cost of the sources; no allocation. The record holds texts and vectors as views;
/// other values are copied.
/// The key is that of the first source. Threads: any number at once. An error from a source says which
/// source, numbered from 0. Throws `errc::argument` if sizes differ, unless `shortest` is given.
///
///     auto loader = zip<"image", "label">(from(images), from(labels)) | shuffle(seed(7)) | batch(256);
template <fixed_string... Names, class... Args>
[[nodiscard]] auto zip(const Args&... args) {
  using wrong =
      typename detail::wrong_join_of_packs<pack<>,
                                           detail::pack_unless<detail::is_zip_option<Args>, Args>...>::type;
  if constexpr ((part_of_kind<Args, poison_tag> || ...)) {
    return ill_formed{};
  } else if constexpr (!detail::is_right<wrong>) {
    wrong::template explain<void>();
    return ill_formed{};
  } else {
    return detail::zip_plans<pack<name_of<Names>...>>(detail::join_all(detail::zipped_plan(args)...),
                                                      (detail::is_zip_option<Args> || ...));
  }
}

namespace detail {

inline std::uint64_t zipped_size(const std::vector<std::uint64_t>& sizes, bool to_the_shortest) {
  for (std::size_t k = 1; k < sizes.size() && !to_the_shortest; ++k) {
    if (sizes[k] != sizes[0]) {
      throw error(errc::argument, {"source ", k, " of zip has ", sizes[k], " samples and source 0 has ",
                                   sizes[0], "; write zip(..., shortest) to end with the shortest"})
          .in_stage("zip");
    }
  }
  return *std::min_element(sizes.begin(), sizes.end());
}

}  // namespace detail

}  // namespace penstock::inline v0_1

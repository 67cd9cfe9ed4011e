// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/joined/joined_source.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct zip_needs_names : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: zip joins records, and one of these elements has no field names; give one "
                  "name for each source, as in zip<\"image\", \"label\">(images, labels)");
  }
};
struct zip_same_field : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: zip joins the fields of all its sources in one record, and two of them have "
                  "one name; give one name for each source, as in zip<\"left\", \"right\">(a, b)");
  }
};
struct zip_name_count : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
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
  using type = light_tuple<>;
};
template <class... Fields>
struct zipped_fields<record<Fields...>> {
  using type = light_tuple<basic_field<typename Fields::name_type, zipped<typename Fields::type>>...>;
};

template <class... Packs>
struct record_of_packs;
template <class... Fields>
struct record_of_packs<light_tuple<Fields...>> {
  using type = record<Fields...>;
  static constexpr bool differ = names_differ<Fields...>();
};
template <class... As, class... Bs, class... Rest>
struct record_of_packs<light_tuple<As...>, light_tuple<Bs...>, Rest...>
    : record_of_packs<light_tuple<As..., Bs...>, Rest...> {};

/// The number of samples; different sizes are an error unless `to_the_shortest`.
[[nodiscard]] inline std::uint64_t zipped_size(const std::vector<std::uint64_t>& sizes,
                                               bool to_the_shortest) {
  for (std::size_t k = 1; k < sizes.size() && !to_the_shortest; ++k) {
    if (sizes[k] != sizes[0]) {
      throw error(errc::argument, {"source ", k, " of zip has ", sizes[k], " samples and source 0 has ",
                                   sizes[0], "; write zip(..., shortest) to end with the shortest"})
          .in_stage("zip");
    }
  }
  return *std::min_element(sizes.begin(), sizes.end());
}

/// The record that the elements form: all their fields, or one field for each element.
template <class Names, class... Elements>
struct zipped_record;
template <class... Elements>
struct zipped_record<light_tuple<>, Elements...>
    : record_of_packs<typename zipped_fields<Elements>::type...> {
  using made = typename record_of_packs<typename zipped_fields<Elements>::type...>::type;

  static constexpr made join(const Elements&... elements) {
    return std::apply([](const auto&... values) { return made(values...); },
                      std::tuple_cat(elements.values()...));
  }
  /// The fields used of each element, given those used of the record.
  static constexpr std::array<projection, sizeof...(Elements)> used_of_each(const projection& used) {
    return {(void(sizeof(Elements)), used)...};
  }
};
template <class... Names, class... Elements>
  requires(sizeof...(Names) == sizeof...(Elements) && sizeof...(Names) != 0)
struct zipped_record<light_tuple<Names...>, Elements...> {
  using made = record<basic_field<Names, zipped<Elements>>...>;
  static constexpr bool differ = names_differ<basic_field<Names, int>...>();
  /// Field I is the element of source I.
  static constexpr bool field_each = true;
  static constexpr made join(const Elements&... elements) { return made(elements...); }
  static constexpr std::array<projection, sizeof...(Elements)> used_of_each(const projection& used) {
    return {(used.uses(Names::value) ? projection() : projection::none())...};
  }
};

/// The samples of a zip: each is of all sources, and the first has its key.
class zipped_places {
 public:
  using cursor = no_cursor;

  template <class Plans>
  zipped_places(const Plans& plans, bool to_the_shortest)
      : size_(zipped_size(sizes_of(plans), to_the_shortest)) {
    plans.each([this](std::size_t, const auto& p) {
      const order_input each = output_of_orders(p);
      if (!starts_ && each.starts && each.size == size_) starts_ = each.starts;
    });
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// The shards of the first source that has shards and is used to its end.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return starts_; }
  [[nodiscard]] joined_place at(position p, cursor&) const noexcept { return {0, p}; }
  [[nodiscard]] std::uint64_t whole() const noexcept { return 1; }
  [[nodiscard]] std::uint64_t share(std::size_t) const noexcept { return 1; }

 private:
  std::uint64_t size_;
  shared<const std::vector<std::uint64_t>> starts_;
};

/// Reads the values of all sources, of which `Record` makes one.
template <class Record, class... Plans>
class zip_reader : public joined_reader<joined_plans<Plans...>, zipped_places> {
  using base = typename zip_reader::joined_reader;

 public:
  using typename base::plans_type;
  using typename base::scout;
  using typename base::worker;

  zip_reader(const plans_type& plans, const zipped_places& places, std::string_view joint,
             const projection& used)
      : base(plans, places, joint, Record::used_of_each(used)) {}

  template <class Sink>
  void evaluate(position p, worker& w, Sink&& sink) const {
    from_source<0>(p, w, sink);
  }
  /// The values of source I from `first` on as one array, where it shows them so: those of field I.
  template <std::size_t I, class Sink>
    requires(Record::field_each && shows_rows<plan_reader<type_at<I, light_tuple<Plans...>>>>)
  std::uint64_t evaluate_rows_of(position first, std::uint64_t count, worker& w, Sink&& sink) const {
    detail::at<I>(w).fetched = w.fetched;
    return this->readers_.template get<I>().evaluate_rows(first, count, detail::at<I>(w), sink);
  }
  /// The ranges that all the sources report.
  template <class Sink>
    requires plans_type::wants_hints
  void ranges(position p, scout& s, Sink&& sink) const {
    for (std::size_t k = 0; k < sizeof...(Plans); ++k)
      this->readers_.with(k, s, [&](const auto& reader, auto& own) { reader.ranges(p, own, sink); });
  }

 private:
  /// The enclosing calls hold the values of the sources before this one.
  template <std::size_t I, class Sink, class... Values>
  void from_source(position p, worker& w, Sink& sink, const Values&... values) const {
    if constexpr (I == sizeof...(Plans)) {
      sink(Record::join(values...));
    } else {
      detail::at<I>(w).fetched = w.fetched;
      this->readers_.template get<I>().evaluate(
          p, detail::at<I>(w), [&](const auto& value) { from_source<I + 1>(p, w, sink, values..., value); });
    }
  }
};

template <class Names, class... Plans>
using zipped_record_of = zipped_record<Names, std::remove_cvref_t<typename Plans::element>...>;

}  // namespace detail

/// The source that `zip` makes; `Names` is a pack of names, empty if records are joined.
template <class Names, class... Plans>
class zip_source
    : public detail::joined_source<zip_source<Names, Plans...>,
                                   detail::zip_reader<detail::zipped_record_of<Names, Plans...>, Plans...>> {
 public:
  using element = typename detail::zipped_record_of<Names, Plans...>::made;
  static constexpr std::string_view source_name = "zip";

  zip_source(detail::joined_plans<Plans...> plans, bool to_the_shortest)
      : zip_source::joined_source(std::move(plans), to_the_shortest) {}
};

namespace detail {

template <class Names, class... Plans>
[[nodiscard]] auto zip_plans(light_tuple<Plans...> plans, bool to_the_shortest) {
  if constexpr (Names::size != 0 && Names::size != sizeof...(Plans)) {
    mistakes::zip_name_count::explain(std::type_identity<Names>{});
    return ill_formed{};
  } else if constexpr (Names::size == 0 && !(any_record<typename Plans::element> && ...)) {
    mistakes::zip_needs_names::explain(
        arrives_here<elements<std::remove_cvref_t<typename Plans::element>...>>{});
    return ill_formed{};
  } else if constexpr (!zipped_record_of<Names, Plans...>::differ) {
    mistakes::zip_same_field::explain(std::type_identity<Names>{});
    return ill_formed{};
  } else {
    return zip_source<Names, Plans...>(joined_plans<Plans...>(std::move(plans)), to_the_shortest);
  }
}
template <class T>
inline constexpr bool is_zip_option = std::is_same_v<T, shortest_option>;

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
      typename detail::wrong_join_of_packs<light_tuple<>,
                                           detail::pack_unless<detail::is_zip_option<Args>, Args>...>::type;
  return detail::unless_wrong<wrong>(
      [](const auto&... given) {
        return detail::zip_plans<light_tuple<name_of<Names>...>>(
            detail::join_all(
                detail::plan_unless<detail::is_zip_option<std::remove_cvref_t<decltype(given)>>>(given)...),
            (detail::is_zip_option<Args> || ...));
      },
      args...);
}

}  // namespace penstock::inline v0_1

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/core_formats.hpp>

namespace penstock::inline v0_1 {

namespace detail {

template <class T>
struct formats_in {
  static constexpr bool valid = dataset_format<T>;
  [[nodiscard]] static light_tuple<T> of(const T& one) { return make_light_tuple(one); }
};
/// A list of formats.
template <class... Formats>
struct formats_in<light_tuple<Formats...>> {
  static constexpr bool valid = (dataset_format<Formats> && ...);
  [[nodiscard]] static const light_tuple<Formats...>& of(const light_tuple<Formats...>& all) { return all; }
};

/// A split among the formats is for the listing.
template <>
struct formats_in<named_split> {
  static constexpr bool valid = true;
  [[nodiscard]] static light_tuple<> of(const named_split&) { return {}; }
};

inline light_tuple<> all_formats() { return {}; }
template <class First, class... Rest>
[[nodiscard]] auto all_formats(const First& first, const Rest&... rest) {
  static_assert(
      formats_in<First>::valid,
      "penstock: dataset takes formats behind the path, such as mds_format{}, or packs of them, such "
      "as core_formats{}");
  return join(formats_in<First>::of(first), all_formats(rest...));
}

/// The alternatives of several variants, each once.
template <class Made, class... Variants>
struct joined_variants {
  using type = Made;
};
template <class... Made, class T, class... Ts, class... Variants>
struct joined_variants<std::variant<Made...>, std::variant<T, Ts...>, Variants...>
    : joined_variants<
          std::conditional_t<(std::same_as<T, Made> || ...), std::variant<Made...>, std::variant<Made..., T>>,
          std::variant<Ts...>, Variants...> {};
template <class... Made, class... Variants>
struct joined_variants<std::variant<Made...>, std::variant<>, Variants...>
    : joined_variants<std::variant<Made...>, Variants...> {};

/// What formats make of a place: of a path if `Storage` is void, otherwise of such a storage.
template <class Format, class Storage>
struct sources_of_format {
  using type = std::variant<>;
};
template <class Format>
struct sources_of_format<Format, void> {
  using type = decltype(std::declval<const Format&>().open(std::declval<const dataset_listing&>()));
};
template <class Format, class Storage>
  requires stored_format<Format, Storage>
struct sources_of_format<Format, Storage> {
  using type = decltype(std::declval<const Format&>().open_in(std::declval<Storage>(),
                                                              std::declval<const dataset_listing&>()));
};
template <class Storage, class Formats>
struct sources_of_formats;
template <class Storage, class... Formats>
struct sources_of_formats<Storage, light_tuple<Formats...>>
    : joined_variants<std::variant<>, typename sources_of_format<Formats, Storage>::type...> {};

/// The formats of the list that can be used with such a storage, or, if it is void, with a path.
template <class Storage, class... Formats>
[[nodiscard]] std::size_t best_of(const dataset_listing& there, const light_tuple<Formats...>& formats) {
  return formats.apply([&](const auto&... each) {
    const auto fit = [&]<class F>(const F& one) {
      if constexpr (std::is_void_v<Storage> || stored_format<F, Storage>) return one.look(there);
      return format_fit::none;
    };
    const std::array<format_candidate, sizeof...(Formats)> all{format_candidate{Formats::name, fit(each)}...};
    return best_format(there, {all.data(), all.size()});
  });
}

template <class Sources, std::size_t I = 0, class Formats, class Open>
[[nodiscard]] Sources opened(const Formats& formats, std::size_t which, const Open& open) {
  if constexpr (I + 1 < Formats::size)
    if (which != I) return opened<Sources, I + 1>(formats, which, open);
  return open(at<I>(formats));
}

/// One of a few sources as one of many.
template <class Sources, class Few>
[[nodiscard]] Sources as_one_of(Few few) {
  if constexpr (std::same_as<Sources, Few>)
    return few;
  else
    return std::visit(
        [](auto& one) {
          return Sources(std::in_place_type<std::remove_reference_t<decltype(one)>>, std::move(one));
        },
        few);
}

template <class... Formats>
[[nodiscard]] auto formats_or_core(const Formats&... formats) {
  if constexpr ((std::same_as<Formats, named_split> && ...))
    return core_formats{};
  else
    return all_formats(formats...);
}

/// The split that was named before the formats, if one was.
inline const named_split* split_among() { return nullptr; }
template <class First, class... Rest>
[[nodiscard]] const named_split* split_among(const First& first, const Rest&...) {
  static_assert(
      (!std::same_as<Rest, named_split> && ...),
      "penstock: dataset takes one split, directly behind the path: dataset(path, split(\"train\"))");
  if constexpr (std::same_as<First, named_split>)
    return &first;
  else
    return nullptr;
}

}  // namespace detail

/// The sources that `dataset(path, formats...)` may make, as a std::variant: `dataset_of<core_formats,
/// mds_format>`.
template <class... Formats>
using dataset_of = typename detail::sources_of_formats<void, decltype(detail::formats_or_core(
                                                                 std::declval<const Formats&>()...))>::type;

/// The name of the format that `dataset` would take: "webdataset". Throws as `dataset` does.
template <class... Formats>
[[nodiscard]] std::string_view format_of(const dataset_listing& there, const Formats&... formats) {
  const auto all = detail::formats_or_core(formats...);
  const std::size_t which = detail::best_of<void>(there, all);
  return all.apply([&](const auto&... each) {
    const std::array<std::string_view, sizeof...(each)> names{std::remove_cvref_t<decltype(each)>::name...};
    return names[which];
  });
}

/// Looks at what is at a place, and makes the source that reads it.
///
///     auto found = dataset("train-{0000..0127}.tar");
///     const std::uint64_t samples = std::visit([](const auto& source) { return source.size(); }, found);
///     auto some = dataset("train-{0000..0127}.tar", webdataset_format{}, ffcv_format{});    // only these
///     std::visit([](const auto& source) {
///       for (auto&& batch : source | decode<field<"txt", identity>> | batch(32, ragged)) train(batch);
///     }, some);
///
/// In: a path (a folder, a file, or a pattern as for `file_names`), or a listing of it; or any storage, whose
/// objects are the dataset's files, or, of a table, those of its log or metadata. Behind it the formats to
/// look for, each as a value, which may hold options (`npz_rows_format<>{.array = "x"}`), or `core_formats{}`
/// for all that need no library; without any it is these. Others stand beside their sources: `dataset(path,
/// core_formats{}, mds_format{})`.
/// Of several splits, `dataset(path, split("train"), formats...)` takes one; see `split`.
/// Of two of one name the later counts: `dataset(path, core_formats{}, tokens_format<>{.window = {.length =
/// 4096}})`.
/// Out: a std::variant of the sources of these formats, a closed set that the compiler knows: `std::visit`
/// with a generic lambda compiles a pipeline for each, and nothing is virtual. Formats of numbers have a
/// source for each type, so name as few formats and types as you need.
/// A format is recognised by what files hold, and by names only where bytes do not tell. Descriptions
/// (`index.json`, `.nv-meta`) count more than content, content more than the layout of folders. In a folder,
/// files that end alike are one dataset; if their names differ in more than digits, as those of splits do,
/// that is an error, and so are several formats that fit equally well.
/// Kind: makes sources; their kinds and costs are their own. Before that it lists a folder, and reads 4 KiB
/// of one file of each ending.
/// Errors: errc::format if nothing is recognised, and errc::argument if several formats fit, both with what
/// is there, what was looked for and what to write; errc::argument for a URL, with the storage that reads it,
/// and for numbers of a type that is not among those of the format; errc::missing, errc::io; and those of
/// the source.
/// Threads: any number may call it.
template <class... Formats>
[[nodiscard]] dataset_of<Formats...> dataset(const dataset_listing& there, const Formats&... formats) {
  const auto all = detail::formats_or_core(formats...);
  using sources = dataset_of<Formats...>;
  return detail::opened<sources>(all, detail::best_of<void>(there, all), [&](const auto& format) {
    return detail::as_one_of<sources>(format.open(there));
  });
}
template <detail::pattern_text Path, class... Formats>
[[nodiscard]] dataset_of<Formats...> dataset(const Path& path, const Formats&... formats) {
  const named_split* const which = detail::split_among(formats...);
  std::string pattern = detail::to_pattern(path);
  return dataset(which == nullptr ? dataset_listing(std::move(pattern)) : dataset_listing(pattern, *which),
                 formats...);
}
template <class Storage, class... Formats>
  requires(!std::same_as<Storage, dataset_listing> && storage<Storage>)
[[nodiscard]] auto dataset(Storage where, const Formats&... formats) {
  const auto all = detail::formats_or_core(formats...);
  using sources = typename detail::sources_of_formats<Storage, std::remove_const_t<decltype(all)>>::type;
  if (const named_split* const which = detail::split_among(formats...))
    where = detail::one_split(std::move(where), *which, "dataset");
  const dataset_listing there(where);
  return detail::opened<sources>(
      all, detail::best_of<Storage>(there, all), [&]<class F>(const F& format) -> sources {
        if constexpr (stored_format<F, Storage>)
          return detail::as_one_of<sources>(format.open_in(std::move(where), there));
        else
          detail::refuse_stored(F::name);
      });
}

}  // namespace penstock::inline v0_1

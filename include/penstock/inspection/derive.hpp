// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/derived_index.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Options of `derive`.
struct derive_options {
  /// A file that is damaged, or of another state of the dataset, is made again; else it is an error.
  bool rebuild = true;
};

namespace detail {

/// The type in which results of a function are kept.
template <class R>
struct kept_as {};
template <class R>
  requires std::is_enum_v<R>
struct kept_as<R> : kept_as<std::underlying_type_t<R>> {};
template <std::unsigned_integral R>
struct kept_as<R> {
  using type = std::uint64_t;
};
template <std::signed_integral R>
struct kept_as<R> {
  using type = std::int64_t;
};
template <std::floating_point R>
struct kept_as<R> {
  using type = double;
};
template <class R>
  requires std::convertible_to<const R&, std::string_view>
struct kept_as<R> {
  using type = std::string;
};

template <class F, class V>
concept asks_for_key = std::invocable<const F&, finished<V>, std::string_view>;

/// The last stage of the run that derives: what the function makes of a sample.
template <class F, class Reader>
struct derive_stage {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "derive";

  template <class V, class Call>
  auto apply(V&& value, const Call& c) const {
    if constexpr (asks_for_key<F, V>) {
      if constexpr (open_sample<V>) {
        const std::string key(value.key());
        return kept((*function)(penstock::finish(std::forward<V>(value)), std::string_view(key)));
      } else {
        static_assert(has_keys<Reader>,
                      "penstock: derive's function wants the key, and samples of this source have none");
        const std::string key = key_of(*reader, c.at);
        return kept((*function)(penstock::finish(std::forward<V>(value)), std::string_view(key)));
      }
    } else {
      static_assert(std::invocable<const F&, finished<V>>,
                    "penstock: derive's function must be callable with a sample, or with a sample and a "
                    "std::string_view, its key, when const");
      if constexpr (std::is_member_pointer_v<F>)
        return kept(call_member(*function, penstock::finish(std::forward<V>(value))));
      else
        return kept((*function)(penstock::finish(std::forward<V>(value))));
    }
  }

  template <class R>
  static auto kept(const R& result) {
    static_assert(
        requires { typename kept_as<R>::type; },
        "penstock: derive's function must return a number, an enumerator or a text");
    if constexpr (std::convertible_to<const R&, std::string_view>)
      return std::string(std::string_view(result));
    else
      return static_cast<typename kept_as<R>::type>(result);
  }

  const F* function = nullptr;
  std::shared_ptr<const Reader> reader;
};

/// The index that `derive` gives, in the kind of its values.
struct wanted_index {
  std::string path;  ///< of the file
  std::string_view name;
  value_kind kind = value_kind::none;
  std::uint64_t dataset = 0, samples = 0;
};

/// What a function gave for the samples: numbers, or texts and which of them each sample has.
struct derived_values {
  std::vector<std::uint64_t> values;
  std::vector<std::string> texts;
};

/// The pass over the samples, whatever the type of its plan.
struct deriving {
  const void* plan;
  derived_values (*values)(const void* plan, std::uint64_t samples);
};

struct found_index {
  std::shared_ptr<const values_file> file;
  derived_from origin = derived_from::none;
};

/// Where an index is kept: at `path`, or in that folder under its name.
[[nodiscard]] std::string derived_path(const std::string& path, std::string_view name);

/// The index that is there, or one that is made now.
[[nodiscard]] found_index found_or_made(const wanted_index& wanted, const derive_options& options,
                                        const deriving& pass);

/// Evaluates the function for all samples; `Plan` ends in it.
template <derived_value T, class Plan>
[[nodiscard]] derived_values values_of(const void* plan, std::uint64_t samples) {
  derived_values all;
  all.values.reserve(static_cast<std::size_t>(samples));
  auto run = static_cast<const Plan*>(plan)->open();
  if constexpr (std::same_as<T, std::string>) {
    std::unordered_map<std::string, std::uint64_t> numbers;
    for (const std::string& value : run) {
      const auto [found, fresh] = numbers.try_emplace(value, all.texts.size());
      if (fresh) all.texts.push_back(value);
      all.values.push_back(found->second);
    }
  } else {
    for (const T value : run) all.values.push_back(std::bit_cast<std::uint64_t>(value));
  }
  return all;
}

/// A value and no concept, of which Clang would tell over ten lines why it is not met.
template <class Stage>
inline constexpr bool derivable_stage =
    part_of_kind<Stage, pointwise_tag> || part_of_kind<Stage, annotation_tag>;

}  // namespace detail

/// Computes a value for every sample of a dataset, once, and keeps it in a file: `derive(source, "label", f,
/// path)`. The index that it gives is what `subset`, `split_by_key`, `class_balanced` and `weighted` choose
/// by; with it they know how many samples there are, where `filter` must look at each.
///
/// In: an indexed source, or a plan of one with stages that work on single samples (`fields`, `decode`,
/// `map`) and annotations; a name; `f(sample)` or `f(sample, key)` with the key as a `std::string_view`,
/// callable when const, by all workers at once. It gives a number (a whole one is kept as `std::int64_t` or
/// `std::uint64_t`, a floating one as a double), an enumerator, or a text. `path` is a file, or a folder that
/// is there, in which the file is called NAME.penstock-values.
/// Out: a `derived_index`, mapped. The same bytes on any number of workers.
///
/// Where the file is there, of this name and of this state of the dataset (its fingerprint), nothing is read
/// but the file. What f does cannot be seen: the name stands for it, and for the stages; give another
/// function another name. A file of another state of the dataset, or one that is damaged, is made again, and
/// `origin()`
/// says so; with `.rebuild = false` it is an error.
/// It is written under a temporary name, flushed to the disk and renamed: it is whole or not there, and what
/// a killed process leaves the next one removes. Of several processes that want it one makes it, the others
/// wait (`flock` on a file beside it, which goes again).
/// Cost: one pass over the dataset, in parallel; 16 bytes a sample in memory meanwhile. Throws what the chain
/// and f throw; `errc::io` where the file cannot be written; `errc::format` where there is a file that is no
/// derived index, or of a newer version or of another type; `errc::argument` where it is of another name.
///
///     auto label = derive(source | decode<field<"cls", integer>>, "label",
///                         [](const auto& sample) { return get<"cls">(sample); }, "derived");
///     auto loader = source | decode<field<"txt", text>> | class_balanced(label, 7) | batch(64, ragged);
template <class Source, class... Stages, class F>
[[nodiscard]] auto derive(const plan<Source, Stages...>& p, std::string_view name, const F& f,
                          const std::string& path, const derive_options& options = {}) {
  static_assert(
      indexed_source<Source>,
      "penstock: derive numbers the samples of a source with an index, and this one can only be read "
      "forward");
  static_assert(
      !renumbering_source<Source>,
      "penstock: derive numbers the samples of a source, and those of mix, or of sources with orders "
      "that were joined, have other numbers in other epochs; derive from each source");
  static_assert((detail::derivable_stage<Stages> && ...),
                "penstock: derive wants the samples as the source has them; leave out orders, filters, batch "
                "and what follows it");
  using reader = typename Source::reader;
  detail::derive_stage<F, reader> last{&f, nullptr};
  if constexpr (has_keys<reader>)
    last.reader =
        std::shared_ptr<const reader>(new const reader(connect_source(p.source(), projection::none())));
  const auto whole = p | last;
  using T = std::remove_cvref_t<typename std::remove_cvref_t<decltype(whole)>::element>;

  if (name.empty())
    throw error(errc::argument, "a derived index must have a name, such as \"label\"").in_stage("derive");
  const detail::wanted_index wanted{detail::derived_path(path, name), name, detail::kind_of<T>,
                                    p.source().fingerprint(), p.source().size()};
  auto found = detail::found_or_made(wanted, options,
                                     {&whole, &detail::values_of<T, std::remove_cvref_t<decltype(whole)>>});
  return derived_index<T>(std::move(found.file), found.origin);
}
/// The same for a source alone.
template <indexed_source Source, class F>
[[nodiscard]] auto derive(const Source& source, std::string_view name, const F& f, const std::string& path,
                          const derive_options& options = {}) {
  return derive(plan<Source>(source), name, f, path, options);
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/inspection/derive.ipp>
#endif

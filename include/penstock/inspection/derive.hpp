// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/open_sample.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/evaluation/reader_calls.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/derived_index.hpp>
#include <penstock/source/files/unpacked_copy.hpp>

#include <sys/stat.h>

#include <unordered_map>

namespace penstock::inline v0_1 {

/// The options of `derive`.
struct derive_options {
  /// Whether a file that is damaged, or from another state of the dataset, is rebuilt; otherwise it is an
  /// error.
  bool rebuild = true;
};

namespace detail {

/// The type in which a function's results are stored.
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

/// The last stage of the run that derives: applies the function to each sample.
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
                      "penstock: derive's function needs the key, but samples of this source have none");
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

/// The index that `derive` is to return, and the kind of its values.
struct wanted_index {
  std::string path;  ///< path of the file
  std::string_view name;
  value_kind kind = value_kind::none;
  std::uint64_t dataset = 0, samples = 0;
};

/// The results of a function for all samples: numbers, or texts and the number of each sample's text.
struct derived_values {
  std::vector<std::uint64_t> values;
  std::vector<std::string> texts;
};

struct found_index {
  std::shared_ptr<const values_file> file;
  derived_from origin = derived_from::none;
};

/// Evaluates the function for all samples; it is the last stage of `Plan`.
template <derived_value T, class Plan>
[[nodiscard]] derived_values values_of(const Plan& plan, std::uint64_t samples) {
  derived_values all;
  all.values.reserve(detail::to_size(samples));
  auto run = plan.open();
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

/// The file of an index: `path` itself, or the index's name in that folder.
[[nodiscard]] inline std::string derived_path(const std::string& path, std::string_view name) {
  struct stat status {};
  const bool folder = path.ends_with('/') || (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode));
  if (!folder) return path;
  if (name.find('/') != name.npos)
    throw error(errc::argument, {"'", name, "' is not a file name for ", path, "; name the file itself"})
        .in_stage("derive");
  return text({path, path.ends_with('/') ? "" : "/", name, ".penstock-values"});
}

/// Loads an existing index, or tells why there is none to use.
[[nodiscard]] inline found_index find_index(const wanted_index& wanted, const derive_options& options) {
  const auto opened = values_file::open(wanted.path);
  if (opened.fault == values_fault::missing) return {};
  if (!opened.file) {
    if (opened.fault != values_fault::damaged || !options.rebuild) throw error(opened.why);
    return {nullptr, derived_from::damage};
  }
  const values_file& there = *opened.file;
  if (there.name() != wanted.name)
    throw error(errc::argument, {"the derived index is called '", there.name(), "' and not '", wanted.name,
                                 "'; name another file, or delete this one"})
        .in_file(wanted.path)
        .at_offset(there.header().name_at());
  check_kind(there, wanted.kind);
  if (there.header().dataset != wanted.dataset || there.header().samples != wanted.samples) {
    if (!options.rebuild)
      throw error(errc::state,
                  "the derived index was made from another dataset, or from another state of it (the "
                  "fingerprints differ); delete it, or leave out .rebuild = false")
          .in_file(wanted.path)
          .at_offset(24);
    return {nullptr, derived_from::stale};
  }
  return {opened.file, derived_from::file};
}

/// Loads the existing index, or builds one.
[[nodiscard]] found_index found_or_made(const wanted_index& wanted, const derive_options& options,
                                        const auto& values) {
  found_index found = find_index(wanted, options);
  if (!found.file) {
    const derived_from origin = found.origin;
    const making_lock lock(wanted.path);
    found = find_index(wanted, options);
    if (!found.file) {
      const derived_values all = values(wanted.samples);
      values_header header;
      header.kind = wanted.kind;
      header.dataset = wanted.dataset;
      write_values(wanted.path, header, wanted.name, all.values, all.texts);
      found = {find_index(wanted, {.rebuild = false}).file, origin};
    }
  }
  if (!found.file)
    throw error(errc::io, "the derived index was removed while it was being made; make it again")
        .in_file(wanted.path);
  return found;
}

/// A variable, not a concept: Clang would take more than ten lines to explain why a concept is not satisfied.
template <class Stage>
inline constexpr bool derivable_stage =
    part_of_kind<Stage, pointwise_tag> || part_of_kind<Stage, sample_cache_tag> ||
    part_of_kind<Stage, annotation_tag>;

}  // namespace detail

/// Computes a value for every sample of a dataset once, and stores it in a file: `derive(source, "label", f,
/// path)`. `subset`, `split_by_key`, `class_balanced` and `weighted` choose by the resulting index; with it
/// they know the number of samples, whereas `filter` must look at each one.
///
/// In: an indexed source, or a plan of one with stages that work on single samples (`fields`, `decode`,
/// `map`) and annotations; a name; `f(sample)` or `f(sample, key)` with the key as a `std::string_view`,
/// callable when const and by all workers concurrently. It returns a number (stored as `std::int64_t` or
/// `std::uint64_t` if it is an integer, as a double if it is floating-point), an enumerator, or a text.
/// `path` is a file, or an existing folder, in which the file is called NAME.penstock-values.
/// Out: a memory-mapped `derived_index`. Its bytes are identical for any number of workers.
///
/// If the file exists with this name and for this state of the dataset (its fingerprint), only the file is
/// read. `derive` cannot see what f does: the name stands for it and for the stages, so give a different
/// function a different name. A file that is damaged or from another state of the dataset is rebuilt, and
/// `origin()` says so; with `.rebuild = false` it is an error.
/// The file is written under a temporary name, flushed to disk and renamed: it is either complete or absent,
/// and the next process removes what a killed process leaves behind. If several processes need it, one builds
/// it and the others wait (`flock` on a file next to it, which is removed afterwards).
/// Cost: one parallel pass over the dataset, which takes 16 bytes of memory per sample. Throws what the chain
/// and f throw; `errc::io` if the file cannot be written; `errc::format` if the existing file is not a
/// derived index, or is of a newer version or another type; `errc::argument` if it has another name.
///
///     auto label = derive(source | decode<field<"cls", integer>>, "label",
///                         [](const auto& sample) { return get<"cls">(sample); }, "derived");
///     auto loader = source | decode<field<"txt", text>> | class_balanced(label, seed(7)) | batch(64, ragged);
template <class Source, class... Stages, class F>
[[nodiscard]] auto derive(const plan<Source, Stages...>& p, std::string_view name, const F& f,
                          const std::string& path, const derive_options& options = {}) {
  static_assert(
      indexed_source<Source>,
      "penstock: derive numbers the samples of a source with an index, but this one can only be read "
      "forward");
  static_assert(
      !renumbering_source<Source>,
      "penstock: derive numbers the samples of a source, but those of mix, or of joined sources with "
      "orders, are numbered differently in each epoch; derive from each source");
  static_assert((detail::derivable_stage<Stages> && ...),
                "penstock: derive needs the samples as the source has them; leave out orders, filters, batch "
                "and everything after it");
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
  auto found = detail::found_or_made(
      wanted, options, [&](std::uint64_t samples) { return detail::values_of<T>(whole, samples); });
  return derived_index<T>(std::move(found.file), found.origin);
}
/// Derives from a source alone.
template <indexed_source Source, class F>
[[nodiscard]] auto derive(const Source& source, std::string_view name, const F& f, const std::string& path,
                          const derive_options& options = {}) {
  return derive(plan<Source>(source), name, f, path, options);
}

}  // namespace penstock::inline v0_1

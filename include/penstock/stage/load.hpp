// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/name.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/storage/concepts.hpp>

#include <vector>

namespace penstock::inline v0_1 {

/// Options of `load`.
struct load_options {
  /// Whether paths may lead out of the folder: "../1.jpg", "/data/1.jpg", "s3://other/1.jpg". Only for paths
  /// that you trust.
  bool allow_outside = false;
  std::uint64_t max_bytes = 1_GiB;  ///< of a file
};

namespace mistakes {

struct load_without_path : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: load<\"path\"> takes a record whose field of that name is a text; write "
                  "decode<field<\"path\", "
                  "text>, ...> in front of it");
  }
};

}  // namespace mistakes

namespace detail {

/// The name of a file in a folder. Throws errc::argument for a path that leads out of it, unless that is
/// allowed.
[[nodiscard]] inline std::string loaded_name(std::string_view folder, std::string_view path,
                                             const load_options& options) {
  const bool outside = path.starts_with('/') || path.find("://") != path.npos;
  bool leaves = outside || path.empty() || path.find('\0') != path.npos;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    leaves = leaves || path.substr(begin, end - begin) == "..";
    begin = end + 1;
  }
  if (path.empty() || (leaves && !options.allow_outside))
    throw error(errc::argument,
                {"the path '", path, "' ", path.empty() ? "is empty" : "leads out of the folder '",
                 path.empty() ? "" : folder,
                 path.empty() ? "" : "'; load_options{.allow_outside = true} reads it nevertheless"});
  std::string made(outside ? std::string_view() : folder);
  if (!made.empty() && !made.ends_with('/')) made += '/';
  return made.append(path);
}
/// The folder that a storage names. Throws errc::argument unless it is one.
[[nodiscard]] inline std::string load_folder(std::span<const std::string> names) {
  if (names.size() != 1)
    throw error(errc::argument,
                {"load is given the storage of one folder, as in load<\"path\">(file(\"data\"), jpeg{}), "
                 "and this one names ",
                 names.size(), " objects"});
  return names.front();
}
[[noreturn, gnu::cold]] inline void too_long_to_load(std::uint64_t size, const load_options& options) {
  throw error(errc::limit,
              {"the file has ", size, " bytes, and load_options::max_bytes is ", options.max_bytes});
}

template <class CodecScratch>
struct load_scratch {
  buffer bytes;
  CodecScratch codec;
};

template <class Name, class T>
inline constexpr bool has_path = false;
template <class Name, any_record T>
  requires has_field<T, Name>
inline constexpr bool has_path<Name, T> =
    std::is_convertible_v<const std::tuple_element_t<T::template index_of<Name>, T>&, std::string_view>;

}  // namespace detail

/// The stage that `load` makes.
template <class Name, renaming_storage Storage, codec Codec>
class load_stage {
 public:
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "load";
  using scratch = detail::load_scratch<scratch_of<Codec>>;
  static constexpr bool one_at_a_time = lone_codec<Codec>;

  load_stage(Storage where, Codec with, load_options options)
      : folder_(detail::load_folder(where.names())),
        storage_(std::move(where)),
        codec_(std::move(with)),
        options_(options) {}

  template <class R, class Call>
  auto apply(R&& sample, const Call& c) const {
    return changed(std::forward<R>(sample), c, std::make_index_sequence<std::remove_cvref_t<R>::size>{});
  }
  [[nodiscard]] std::string describe() const {
    return detail::text({"load<", Name::value, ">(", folder_, ": ", Codec::codec_name, ")"});
  }

  template <class Context>
  static consteval auto diagnose() {
    using element = std::remove_cvref_t<typename Context::element>;
    return mistakes::unless<detail::has_path<Name, element>, mistakes::load_without_path>{};
  }

 private:
  template <class R, class Call, std::size_t... Is>
  auto changed(R&& sample, const Call& c, std::index_sequence<Is...>) const {
    using type = std::remove_cvref_t<R>;
    return record<basic_field<typename type::template field_at<Is>::name_type,
                              std::remove_cvref_t<decltype(one_field<Is>(std::forward<R>(sample), c))>>...>(
        detail::made_by{}, [&]() -> decltype(auto) { return one_field<Is>(std::forward<R>(sample), c); }...);
  }
  template <std::size_t I, class R, class Call>
  decltype(auto) one_field(R&& sample, const Call& c) const {
    using field = typename std::remove_cvref_t<R>::template field_at<I>;
    if constexpr (std::is_same_v<typename field::name_type, Name>)
      return loaded(std::string_view(get<I>(sample)), c.scratch);
    else
      return get<I>(std::forward<R>(sample));
  }
  decltype(auto) loaded(std::string_view path, scratch& room) const {
    std::string name = detail::loaded_name(folder_, path, options_);
    try {
      const Storage one = storage_.with_names(std::vector<std::string>{name});
      auto session = one.connect();
      const std::uint64_t size = session.size(0);
      if (size > options_.max_bytes) detail::too_long_to_load(size, options_);
      room.bytes.resize_for_overwrite(detail::to_size(size));
      session.read(0, 0, room.bytes.span());
      return detail::run_codec(codec_, room.bytes.view(), room.codec);
    } catch (error& e) {
      e.in_file(name);
      throw;
    }
  }

  std::string folder_;
  Storage storage_;
  Codec codec_;
  load_options options_;
};

/// Replaces a path in a record by what the file holds that it names: samples of a table or of JSON lines
/// whose images lie beside it.
///
/// `rows | load<"image">(file("data"), jpeg{})`.
///
/// In: a record whose field is a text; a storage whose only name is the folder that paths are relative to,
/// which is that of the manifest as a rule: `file("data")`, `s3("bucket/data")`, `http("https://host/data")`;
/// and a codec.
/// Out: the record with the codec's value in the place of the path; `load<"image">(file("data"), identity{})`
/// gives the bytes.
/// Pointwise: files are read in the workers, wherever the stage stands, each when its sample is made, with
/// the storage's options. Keeps all five guarantees. A storage with latency gets one request at a time from
/// each worker: raise `workers`.
/// Cost per sample: a session of the storage for its file, and reading it whole. Over `http` and `s3` that is
/// a connection of its own each time, with retries of its own, and a run that is stopped waits for it: give
/// the storage a stop token (`http_options::stop`), or pack such files into shards.
/// Errors: errc::argument for a path that is empty or leads out of the folder (see `load_options`), and for a
/// storage that does not name one folder; errc::limit for a file of more than `max_bytes`; what the storage
/// and the codec throw, with the file.
/// Threads: any number at once.
template <fixed_string Name, renaming_storage Storage, codec Codec>
[[nodiscard]] load_stage<name_of<Name>, Storage, Codec> load(Storage folder, Codec with,
                                                             load_options options = {}) {
  return {std::move(folder), std::move(with), options};
}

}  // namespace penstock::inline v0_1

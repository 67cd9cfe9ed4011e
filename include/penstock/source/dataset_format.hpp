// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/named_split.hpp>
#include <penstock/source/files/table_marks.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <optional>
#include <variant>

namespace penstock::inline v0_1 {

/// How well a format explains what is at a place. `dataset` takes the format that explains it best.
enum class format_fit : std::uint8_t {
  none,
  layout,      ///< what kinds of files there are, and in which folders
  content,     ///< how the files begin
  description  ///< a file or folder that only this format has: an index, a log
};

/// Files whose names end alike, such as "*.tar", and what the first of them holds. Those of one ending are
/// taken to be of one format, so that a folder of a million shards is recognised by one read.
struct listed_files {
  std::string ending;              ///< ".tar", ".tar.gz", in lower case and without digits; or a whole name
  std::vector<std::string> paths;  ///< in order
  std::uint64_t size = 0;          ///< of the first file
  std::string head;                ///< its first bytes, at most 4 KiB
  std::string tail;                ///< its last bytes, at most 16

  /// Whether the first file begins with these bytes.
  [[nodiscard]] bool begins(std::string_view magic) const noexcept { return head.starts_with(magic); }
};

/// The files at a path or in a storage. Formats recognise a dataset by them.
///
/// In: a path, which is a folder, a file, or, if there is none of this name, a pattern (see `file_names`); or
/// a storage, all of whose objects are the dataset. Of a folder, names that begin with `.` or `_` are left
/// out. Cost: a list of the folder, and a read of the first and last bytes of one file of each ending, of at
/// most 256 endings.
/// Throws `errc::io` for what cannot be read, `errc::missing` for a pattern without a match, and
/// `errc::argument` for a URL, with what to write.
class dataset_listing {
 public:
  explicit dataset_listing(std::string path);
  /// The files of a split, found by the names of all files and folders below the path; see `split`.
  dataset_listing(const std::string& path, const named_split& which);
  template <class Storage>
    requires(!std::same_as<Storage, dataset_listing> && storage<Storage>)
  explicit dataset_listing(const Storage& where) {
    auto session = where.connect();
    list_objects(where.names(), session);
  }

  /// The path; "the storage" for a storage.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] bool is_folder() const noexcept { return is_folder_; }
  [[nodiscard]] bool is_storage() const noexcept { return is_storage_; }
  [[nodiscard]] std::span<const listed_files> files() const noexcept { return files_; }
  /// The names of the folders in the folder.
  [[nodiscard]] std::span<const std::string> folders() const noexcept { return folders_; }
  /// Whether the folder has a file or a folder of this name, be it one that is left out of the lists.
  [[nodiscard]] bool has(std::string_view name) const;
  /// Whether the folder has a folder of this name; of a storage, whether an object lies in one, at any depth:
  /// "s3://bucket/sales/_delta_log/0.json" in "_delta_log".
  [[nodiscard]] bool has_folder(std::string_view name) const;
  /// Whether the folder is, or is in, a table of Delta Lake, Iceberg or Hudi, or objects of a storage
  /// describe one: not all files are rows then.
  [[nodiscard]] bool is_table() const noexcept { return table_.format != detail::table_format::none; }
  /// Which table it is.
  [[nodiscard]] const detail::table_mark& table() const noexcept { return table_; }
  /// A list of a folder in this one.
  [[nodiscard]] dataset_listing below(std::string_view folder) const;

  /// The files of those endings of which `is` says that they are of a format, in the order of their paths.
  template <class Is>
  [[nodiscard]] std::vector<std::string> paths_of(const Is& is) const {
    std::vector<std::string> paths;
    for (const listed_files& some : files_)
      if (is(some)) paths.insert(paths.end(), some.paths.begin(), some.paths.end());
    return in_order(std::move(paths));
  }
  /// `content` if `is` holds for files of the folder, or for all files where no folder was named.
  template <class Is>
  [[nodiscard]] format_fit fit_of(const Is& is) const {
    std::size_t count = 0;
    for (const listed_files& some : files_) count += is(some) ? 1 : 0;
    return count != 0 && (is_folder_ || count == files_.size()) ? format_fit::content : format_fit::none;
  }
  /// One line: how many files of which endings, and which folders.
  [[nodiscard]] std::string describe() const;

 private:
  void list();
  void list_folder();
  void list_paths(std::vector<std::string> paths);
  void list_objects(std::span<const std::string> names, session_view session);
  void list_names(std::span<const std::string> names, session_view session);
  // Throws errc::argument for a folder with files of several splits.
  [[nodiscard]] std::vector<std::string> in_order(std::vector<std::string> paths) const;

  std::string path_;
  bool is_folder_ = false, is_storage_ = false;
  std::vector<listed_files> files_;
  std::vector<std::string> folders_;
  detail::table_mark table_;
};

namespace detail {
template <class T>
concept some_variant = requires { std::variant_size<T>::value; };
}  // namespace detail

/// A format that `dataset` can find. To add one, write a class beside its source:
///
///   name                  its source's name, such as "mds"; the class is called `mds_format`
///   look(listing)         how well it explains what is there; reads at most what belongs to a description
///   open(listing)         makes the source, a std::variant of one, or of one for each type of number; only called
///                         if it fits best
///
/// It may have data members, options that the source is made with.
template <class F>
concept dataset_format = std::copy_constructible<F> && requires(const F& f, const dataset_listing& there) {
  { F::name } -> std::convertible_to<std::string_view>;
  { f.look(there) } -> std::same_as<format_fit>;
  { f.open(there) } -> detail::some_variant;
};

/// A format whose files can lie in a storage:
///
///   open_in(where, listing)     makes the source of a storage, a std::variant as that of `open`
template <class F, class Storage>
concept stored_format =
    dataset_format<F> && requires(const F& f, Storage where, const dataset_listing& there) {
      { f.open_in(where, there) } -> detail::some_variant;
    };

namespace detail {

/// The types of numbers of a format: those it was given, or `Default`.
template <class Default, class... Ts>
using number_types = std::conditional_t<sizeof...(Ts) == 0, Default, light_tuple<Ts...>>;

using common_numbers = light_tuple<std::uint8_t, std::int16_t, std::int32_t, std::int64_t, float, double>;

struct format_candidate {
  std::string_view name;
  format_fit fit;
};

/// The place of the format that explains best what is there, of those of one name the last. Throws
/// `errc::format` if none does, and `errc::argument` if several do equally well.
[[nodiscard]] std::size_t best_format(const dataset_listing& there,
                                      std::span<const format_candidate> candidates);

/// Whether the folder has an `index.json` with this key near its beginning.
[[nodiscard]] bool index_has(const dataset_listing& there, std::string_view key);

/// Whether the folder has a folder `metadata` with files as tables of Iceberg have them, or the storage has
/// such files, in any folder.
[[nodiscard]] bool has_iceberg_metadata(const dataset_listing& there);

/// Throws `errc::argument` for a path that is a URL, with the storage to write.
void refuse_urls(std::string_view path);

/// Throws `errc::argument`: files of the format cannot lie in such a storage.
[[noreturn, gnu::cold]] void refuse_stored(std::string_view format);

/// Throws `errc::argument`: the files hold another type than those that the format was given.
[[noreturn, gnu::cold]] void refuse_type_of_format(const dataset_listing& there, std::string_view format,
                                                   std::string_view stored);

/// What a dataset holds, for the message that a format does not have its type.
struct stored_numbers {
  const dataset_listing* there;
  std::string_view format;
  std::string text;
};

/// Makes the source of the first type of the list for which `is` holds, as one of those of all types.
template <class... Ts, class Is, class Make>
[[nodiscard]] auto source_of_type(std::type_identity<light_tuple<Ts...>>, const stored_numbers& stored,
                                  const Is& is, const Make& make) {
  std::optional<std::variant<decltype(make.template operator()<Ts>())...>> made;
  const bool found =
      ((is.template operator()<Ts>() && (made.emplace(make.template operator()<Ts>()), true)) || ...);
  if (!found) refuse_type_of_format(*stored.there, stored.format, stored.text);
  return *std::move(made);
}

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/dataset_format.ipp>
#endif

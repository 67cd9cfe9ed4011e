// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/open_sample.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/index_policy.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/records/record_reader.hpp>
#include <penstock/source/records/shard_reader.hpp>
#include <penstock/source/records/shard_set.hpp>
#include <penstock/source/tar/tar_shards.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>

namespace penstock::inline v0_1 {

namespace detail {

template <storage Storage>
[[nodiscard]] index_rules rules_of_tar(const webdataset_options& options) {
  if constexpr (may_be_stored<Storage>)
    return {options, &tar_shards()};
  else
    return {options, &local_tar_shards()};
}

/// The shards of a storage, or, with one more argument, those listed in a manifest.
template <storage Storage, std::same_as<manifest>... Known>
[[nodiscard]] shared<const shard_set<Storage>> open_tar_shards(Storage where,
                                                               const webdataset_options& options,
                                                               const Known&... known) {
  const shared<const shard_set<Storage>> set(
      new const shard_set<Storage>(std::move(where), rules_of_tar<Storage>(options), known...));
  if (options.require_end) set->check_ends();
  return set;
}

}  // namespace detail

/// Shards in the WebDataset format: tar archives in which consecutive members with one name and several
/// extensions form a sample.
///
///     auto samples = webdataset("train-{0000..0127}.tar");
///     auto mapped = webdataset(mapped_file("train-{0000..0127}.tar"));
///     auto here = webdataset(manifest_from_string(received));
///     auto beside = webdataset("train-{0000..0127}.tar", index_policy::keep);
///
/// If you pass a manifest that another process made (`to_string`, `manifest_from_string`), no folder is
/// listed and no index is opened; a shard that does not match the manifest throws `errc::io` at its first
/// use.
///
/// In: a pattern or a list of paths, which is `file`, or any storage. Out: an open sample with a key and
/// members by their lower-cased extensions; bytes are read when a stage asks for them. If `fields<...>` or
/// `decode<field<...>...>` is the first stage, members that it does not name are neither fetched ahead nor
/// read, except for gaps of up to 8 KiB that one read spans.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Any sample can be reached directly
/// through the index of its shard, which is built in one pass over the shard's headers when the dataset is
/// first made, and kept in the user's cache folder (see `index_policy`). A plan holds the manifest; a run
/// opens shards and maps indexes at their first use.
/// Cost per sample: a table look-up; then one pread for each member of 32 KiB or more, and one for each
/// group of adjacent smaller members; when samples are read in order, small ones share reads of up to 256
/// KiB. Mapped files are copied from instead (see `file`). No allocation in the steady state.
/// Errors: errc::io for a shard that cannot be read or has changed (for mapped shards see `file` and
/// `mapped_file_options`); errc::format, with shard, offset and key, for a shard that is not a complete tar
/// archive or has two members of one name in a sample. Errors of later stages carry shard, offset and key.
/// An archive may end without its zero blocks, unless `require_end` is set; an archive cut off within a
/// block is incomplete. errc::limit for an extension header above `extension_limit`.
/// Threads: any number may evaluate, each with its own worker.
/// Where Python's tarfile and the standards differ, this source follows the standards: only ustar headers
/// have prefixes, the last of several extension headers wins, and an empty pax value cancels an earlier one.
/// In extensions only ASCII letters are lower-cased. Sparse files of GNU tar are refused; a body with
/// SUN.holesdata is taken unchanged.
/// Source: webdataset, tariterators.py; POSIX.1-2017 pax; the GNU tar manual.
template <storage Storage>
class webdataset
    : public detail::record_source<detail::shard_set<Storage>,
                                   detail::open_shards<typename Storage::session, detail::show_samples>,
                                   webdataset<Storage>> {
 public:
  static constexpr std::string_view source_name = "webdataset";

  explicit webdataset(Storage where, webdataset_options options = {})
      : webdataset::record_source(detail::open_tar_shards(std::move(where), options)) {}
  template <detail::pattern_text Text>
    requires std::same_as<Storage, file>
  explicit webdataset(const Text& pattern, webdataset_options options = {})
      : webdataset(detail::files_of(detail::to_pattern(pattern)), options) {}
  explicit webdataset(std::vector<std::string> paths, webdataset_options options = {})
    requires std::same_as<Storage, file>
      : webdataset(file(std::move(paths)), options) {}
  explicit webdataset(std::initializer_list<const char*> paths, webdataset_options options = {})
    requires std::same_as<Storage, file>
      : webdataset(file(paths), options) {}

  /// The shards listed in a manifest.
  explicit webdataset(const class penstock::manifest& known, webdataset_options options = {})
    requires std::same_as<Storage, file>
      : webdataset(file(detail::names_in(known)), known, options) {}
  explicit webdataset(Storage where, const class penstock::manifest& known, webdataset_options options = {})
      : webdataset::record_source(detail::open_tar_shards(std::move(where), options, known)) {}

  /// The shards of which only the samples before some damage are in the dataset, as far as this plan has
  /// looked for indexes: none if it was made with a manifest. See `on_damaged_shard`.
  [[nodiscard]] std::span<const damaged_shard> damaged_shards() const noexcept {
    return this->known().damages;
  }
};

template <storage Storage>
webdataset(Storage, webdataset_options = {}) -> webdataset<Storage>;
webdataset(manifest, webdataset_options = {}) -> webdataset<file>;
template <storage Storage>
webdataset(Storage, manifest, webdataset_options = {}) -> webdataset<Storage>;
template <detail::pattern_text Text>
webdataset(const Text&, webdataset_options = {}) -> webdataset<file>;
webdataset(std::vector<std::string>, webdataset_options = {}) -> webdataset<file>;
webdataset(std::initializer_list<const char*>, webdataset_options = {}) -> webdataset<file>;

}  // namespace penstock::inline v0_1

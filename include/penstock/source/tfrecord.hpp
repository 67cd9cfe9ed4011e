// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<isa-l/crc.h>)
#error "penstock/source/tfrecord.hpp needs ISA-L: link penstock::tfrecord"
#endif

#include <penstock/source/dataset_format.hpp>
#include <penstock/source/files/data_folder.hpp>
#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/files/packed_format.hpp>
#include <penstock/source/index_policy.hpp>
#include <penstock/source/record_files.hpp>
#include <penstock/source/records/shard_reader.hpp>
#include <penstock/source/records/shard_sample.hpp>
#include <penstock/source/records/shard_set.hpp>
#include <penstock/source/records/tf_records.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/file_names.hpp>

namespace penstock::inline v0_1 {

/// Options of `tfrecord`; those of the same names in `webdataset_options` say more.
struct tfrecord_options {
  /// `cache`, `keep`, `transient` or `require`: other programs' indexes of TFRecord files are not read.
  index_policy index = index_policy::cache;
  std::size_t threads = 0;
  std::string index_folder = {};
  std::uint64_t scan_gap = 256_KiB;
  /// Whether the checksum of each payload is compared when the payload is used.
  bool check = true;
  /// What to do with a file that is cut off, or in which the size of a record is damaged.
  penstock::on_damaged_shard on_damaged_shard = penstock::on_damaged_shard::refuse;
};

namespace detail {

inline index_choice::operator tfrecord_options() const { return {.index = index_policy(*this)}; }

/// The payload of a record, not read yet. Valid during the call that delivers it.
template <class Worker>
class tf_record {
 public:
  using unfinished = void;
  /// Views of mapped files are valid as long as the run, so holding one needs no copy.
  static constexpr bool lasting = Worker::views;

  tf_record() = default;
  tf_record(Worker& worker, bool check) noexcept
      : worker_(&worker),
        offset_(worker.at.tables->offset(worker.at.first)),
        size_(worker.at.tables->size(worker.at.first) - tf_footer_size),
        check_(check) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// The offset of the bytes in the file.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  void read_into(mutable_bytes into) const {
    if (into.size() != size_) wrong_size(size_, into.size());
    if (!check_ || worker_->reads_straight(offset_, size_ + tf_footer_size)) {
      worker_->read(worker_->at.first, offset_, into);
      if (!check_) return;
      std::array<std::byte, tf_footer_size> footer;
      worker_->read_more(offset_ + size_, footer);
      check_tf_payload(masked_crc(into), footer);
    } else {
      const bytes_view whole = worker_->finish(worker_->at.first, offset_, size_ + tf_footer_size);
      check_tf_payload(copy_with_masked_crc(into, whole.first(into.size())), whole.subspan(into.size()));
    }
  }
  [[nodiscard]] bytes_view finish() const {
    const bytes_view whole = worker_->finish(worker_->at.first, offset_, size_ + tf_footer_size);
    const bytes_view payload = whole.first(to_size(size_));
    if (check_) check_tf_payload(masked_crc(payload), whole.subspan(to_size(size_)));
    return payload;
  }

 private:
  Worker* worker_ = nullptr;
  std::uint64_t offset_ = 0;
  std::uint64_t size_ = 0;
  bool check_ = true;
};

/// What `tfrecord` delivers: payloads.
struct show_tf_records {
  template <class Worker>
  using element = tf_record<Worker>;

  bool check = true;

  template <class Files>
  [[nodiscard]] static show_tf_records of(const Files& files) noexcept {
    return {files.check};
  }
  template <class Worker>
  [[nodiscard]] tf_record<Worker> open(Worker& w) const noexcept {
    return {w, check};
  }
  [[nodiscard]] static std::string key(const std::string& path, const shard_index&, std::uint64_t record) {
    return text({path, ":", record});
  }
  static void add_context(const sample_cursor& at, error& e) {
    const std::uint64_t payload = at.tables->offset(at.first);
    // An offset without a file comes from a codec, and counts from the payload's first byte, or a feature's.
    if (e.file().empty() && e.offset()) e.within("what its stage was given", payload);
    e.in_file(*at.url).for_key(key(*at.url, *at.tables, at.sample)).at_offset(payload);
  }
};

/// How `record_files` reads TFRecord files.
struct tf_layout {
  static constexpr std::string_view source_name = "tfrecord";
  using files = known_shards;
  template <storage Storage>
  struct stored : shard_set<Storage> {
    bool check;

    stored(Storage given, const tf_layout& chosen)
        : shard_set<Storage>(std::move(given), rules_of(chosen.options)), check(chosen.options.check) {}
    /// Covers each file's name and size, and where its records are.
    [[nodiscard]] std::uint64_t fingerprint() const noexcept {
      return mix64(this->shards.fingerprint() ^ 0x74667265636f7264);
    }
  };
  template <class Session>
  using opened = open_shards<Session, show_tf_records>;

  tfrecord_options options;

  [[nodiscard]] static index_rules rules_of(const tfrecord_options& options) {
    if (options.index.foreign_ != nullptr)
      throw error(errc::argument,
                  "tfrecord makes its own indexes; dali_index and energon_index are for tar shards");
    return {{.index = options.index,
             .threads = options.threads,
             .index_folder = options.index_folder,
             .scan_gap = options.scan_gap,
             .on_damaged_shard = options.on_damaged_shard},
            &detail::tf_record_files()};
  }
};

}  // namespace detail

/// The source that `tfrecord` makes of files.
template <storage Storage>
class tfrecord_source : public record_files<detail::tf_layout, Storage, tfrecord_source<Storage>> {
 public:
  tfrecord_source(Storage where, const tfrecord_options& options)
      : tfrecord_source::record_files({options}, std::move(where)) {}

  /// The files of which only the records before some damage are in the dataset; see `on_damaged_shard`.
  [[nodiscard]] std::span<const damaged_shard> damaged_shards() const noexcept {
    return this->known().damages;
  }
};

/// The records of TFRecord files, in any order.
///
///     auto samples = tfrecord("train-{00..15}-of-16.tfrecord") | shuffle |
///                    decode<tf_example<feature<"image/encoded", bytes>, feature<"image/class/label", std::int64_t>>> |
///                    decode<field<"image/encoded", jpeg>>;
///
/// In: a pattern of paths, which is `file`; a folder, whose files with "tfrecord" in their names are taken in
/// the order of their paths, with those of folders in it; or any storage. Of several splits
/// `tfrecord(folder, split("train"))` reads one; see `split`. Files are not compressed: for those see
/// `tfrecord_stream`. Out: a record's payload as a byte element. `decode<tf_example<...>>` reads its features
/// if it is a `tf.train.Example`.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. A file says only in each record
/// where the next one is: an index is made in one pass over the headers when the dataset is first made, and
/// kept in the user's cache folder (see `index_policy`); it takes 24 bytes a record.
/// Cost per sample: a table look-up and the checksum of the payload, 8 to 20 GB/s with ISA-L on x86; then as
/// for `webdataset`: nothing is copied in a mapped file (see `file`), records below 32 KiB share reads in
/// order, and larger ones are read straight into the batch. No allocation in the steady state.
/// Errors: errc::checksum, with file, offset and record, for a size or a payload that does not match its
/// checksum;
/// the sizes are checked when the index is made. errc::format for a file that is cut off or no TFRecord file;
/// errc::argument for a compressed one, and for a folder or storage of several splits, with what to write;
/// errc::missing for a folder without files or without the split; errc::io for a file that cannot be read or
/// has changed. The errors of later stages carry the file, the offset and "file:record", counted from 0.
/// Threads: any number may evaluate, each with its own worker.
/// Source: tensorflow, tsl/lib/io/record_reader.cc.
template <storage Storage>
[[nodiscard]] tfrecord_source<Storage> tfrecord(Storage where, const tfrecord_options& options = {}) {
  return {detail::one_split(std::move(where), "tfrecord"), options};
}
template <storage Storage>
[[nodiscard]] tfrecord_source<Storage> tfrecord(Storage where, const named_split& which,
                                                const tfrecord_options& options = {}) {
  return {detail::one_split(std::move(where), which, "tfrecord"), options};
}
template <detail::pattern_text Text>
[[nodiscard]] tfrecord_source<file> tfrecord(const Text& pattern, const tfrecord_options& options = {}) {
  const std::string path = detail::files::local_path(detail::to_pattern(pattern));
  return {detail::is_data_folder(path) ? file(detail::data_paths(detail::data_kind::tfrecord, path))
                                       : detail::files_of(path),
          options};
}
template <detail::pattern_text Text>
[[nodiscard]] tfrecord_source<file> tfrecord(const Text& pattern, const named_split& which,
                                             const tfrecord_options& options = {}) {
  return {file(detail::data_paths(detail::data_kind::tfrecord, pattern, &which)), options};
}
[[nodiscard]] inline tfrecord_source<file> tfrecord(std::vector<std::string> paths,
                                                    const tfrecord_options& options = {}) {
  return {file(std::move(paths)), options};
}

/// TFRecord files for `dataset`, recognised by the checksum of the first record's size.
struct tfrecord_format {
  static constexpr std::string_view name = "tfrecord";

  tfrecord_options options = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) { return there.fit_of(&is_tfrecord); }
  [[nodiscard]] std::variant<tfrecord_source<file>> open(const dataset_listing& there) const {
    return tfrecord(there.paths_of(&is_tfrecord), options);
  }
  template <storage Storage>
  [[nodiscard]] std::variant<tfrecord_source<Storage>> open_in(Storage where, const dataset_listing&) const {
    return tfrecord(std::move(where), options);
  }

 private:
  // Compressed files go by their names, and are refused with what to write.
  [[nodiscard]] static bool is_tfrecord(const listed_files& some) {
    const bytes_view head = bytes_of(some.head);
    if (!detail::compression_of(head).empty()) return some.ending.find("tfrecord") != std::string::npos;
    return head.size() >= detail::tf_header_size &&
           detail::tf_header(head.first(detail::tf_header_size)).intact;
  }
};

}  // namespace penstock::inline v0_1

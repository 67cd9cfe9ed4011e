// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component tfrecord. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<isa-l/crc.h>)
#error "penstock_tfrecord.hpp needs ISA-L: link penstock::tfrecord"
#endif

#include "penstock.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <isa-l/crc.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// ---- penstock/source/records/tf_records.hpp

/// The records of TFRecord files: a header of 12 bytes (the payload's size, and the checksum of these 8
/// bytes), the payload, and its checksum.
/// Source: tensorflow, tsl/lib/io/record_{reader,writer}.cc and tsl/lib/hash/crc32c.h.
namespace penstock::inline v0_1 {
namespace detail {

/// ISA-L returns with bits in the upper halves of AVX registers. As long as they are there, each instruction
/// that writes a lower half waits for the last write of the upper one, here for the whole checksum: the
/// prefetches of the samples that come next would start after it, and not beside it.
inline void end_wide_registers() noexcept {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx"))
    asm volatile("vzeroupper" ::
                     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#endif
}

/// Goes on with a CRC-32C, which begins as ~0.
[[nodiscard]] inline std::uint32_t more_crc(std::uint32_t crc, bytes_view bytes) noexcept {
  for (std::size_t done = 0; done < bytes.size();) {
    const std::size_t some = std::min<std::size_t>(bytes.size() - done, 1_GiB);
    // ISA-L only reads them
    auto* const from = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data() + done));
    crc = ::crc32_iscsi(from, static_cast<int>(some), crc);
    done += some;
  }
  return crc;
}
/// A checksum as it is stored: CRC-32C, rotated and moved, so that a checksum of bytes that hold checksums is
/// none of them.
[[nodiscard]] inline std::uint32_t masked(std::uint32_t crc) noexcept {
  end_wide_registers();
  return std::rotr(~crc, 15) + 0xa282ead8u;
}

/// The checksum of a record's bytes.
[[nodiscard]] inline std::uint32_t masked_crc(bytes_view bytes) noexcept {
  return masked(more_crc(~std::uint32_t{0}, bytes));
}
/// Copies a record's bytes, and gives the checksum of the copy. In pieces, which the checksum finds in the
/// first cache: of other bytes it would wait for memory as long as the copy does.
[[nodiscard]] inline std::uint32_t copy_with_masked_crc(mutable_bytes into, bytes_view from) noexcept {
  std::uint32_t crc = ~std::uint32_t{0};
  for (std::size_t done = 0; done < from.size();) {
    const std::size_t some = std::min<std::size_t>(from.size() - done, 16_KiB);
    std::memcpy(into.data() + done, from.data() + done, some);
    prefetch_lines(from.data() + done + some, std::min<std::size_t>(from.size() - done - some, 1024));
    crc = more_crc(crc, into.subspan(done, some));
    done += some;
  }
  return masked(crc);
}

inline constexpr std::size_t tf_header_size = 12, tf_footer_size = 4;

/// What a record's header says.
struct tf_header {
  std::uint64_t size = 0;  ///< of the payload
  bool intact = false;     ///< whether its checksum is right

  /// From 12 bytes.
  explicit tf_header(bytes_view bytes) noexcept
      : size(load_little<std::uint64_t>(bytes.data())),
        intact(load_little<std::uint32_t>(bytes.data() + 8) == masked_crc(bytes.first(8))) {}
};

/// Throws for a file that does not begin with a record: with what to write if it is compressed.
[[noreturn]] inline void not_tf_records(bytes_view head, std::string_view reader) {
  const std::string_view format = compression_of(head);
  if (!format.empty())
    throw error(errc::argument, packed_advice(format, std::string(reader) + "<", ">(...)")).at_offset(0);
  if (head.size() < tf_header_size)
    throw not_a("a TFRecord file", head, {"it has only ", head.size(), " bytes"});
  throw not_a("a TFRecord file", head,
              {"the checksum of its first record's size is wrong",
               may_begin_zlib(head) ? "; if it is compressed with zlib, write "
                                      "tfrecord_stream<unpack_zlib>(...)"
                                    : ""});
}

[[noreturn]] inline void tf_header_damaged(std::uint64_t record, std::uint64_t offset) {
  throw error(errc::checksum,
              {"the size of record ", record, " does not match its checksum: the file is damaged here"})
      .at_offset(offset);
}
[[noreturn]] inline void tf_record_cut_off(std::uint64_t record, std::uint64_t size, std::uint64_t left,
                                           std::uint64_t offset) {
  throw error(errc::format, {"the file ends within record ", record, ", which needs ", size, " bytes where ",
                             left, " are left: it was cut off"})
      .at_offset(offset);
}
inline void check_tf_payload(std::uint32_t checksum, bytes_view footer) {
  if (load_little<std::uint32_t>(footer.data()) != checksum) [[unlikely]]
    throw error(errc::checksum, "the record does not match its checksum: the file is damaged");
}

/// Makes the index of a file in one pass over the headers of its records.
[[nodiscard]] inline buffer index_tf_records(session_view session, object_id id, const std::string& name,
                                             std::uint64_t, scan_pace pace, build_options options = {}) {
  try {
    const object_version shard = session.version(id);
    header_reader in(session, id, shard.size, pace);
    index_builder builder(true);
    std::uint64_t at = 0, record = 0;
    const auto next = [&] {
      constexpr std::size_t frame = tf_header_size + tf_footer_size;
      const std::uint64_t left = shard.size - at;
      const bytes_view head = in.get(at, tf_header_size);
      if (head.size() < tf_header_size || !tf_header(head).intact) {
        if (record == 0) not_tf_records(in.get(0, 4_KiB), "tfrecord_stream");
        if (head.size() < tf_header_size) tf_record_cut_off(record, frame, left, at);
        tf_header_damaged(record, at);
      }
      const std::uint64_t size = tf_header(head).size;
      if (left < frame || size > left - frame)
        tf_record_cut_off(record, size + std::min<std::uint64_t>(tf_footer_size, ~size),
                          left - tf_header_size, at);
      builder.add_record(at + tf_header_size, size + tf_footer_size);
      at += size + frame;
      ++record;
    };
    try {
      while (at != shard.size) next();
    } catch (const error& e) {
      const bool damaged = e.code() == errc::format || e.code() == errc::checksum;
      // A first size that matches its checksum makes it a file of records.
      const bool begins =
          record != 0 || (shard.size >= tf_header_size && tf_header(in.get(0, tf_header_size)).intact);
      if (options.damage == nullptr || !damaged || !begins) throw;
      session.confirm(id);
      options.damage->note(e, at);
      builder.note_unended(true);
    }
    session.confirm(id);
    if (session.version(id) != shard) throw error(errc::io, "the file was changed while its index was built");
    return builder.finish(shard);
  } catch (error& e) {
    session.confirm(id);
    e.in_file(name);
    throw;
  }
}

/// Compares an index with the headers of the first, the last, and a few other records.
[[nodiscard]] inline bool agrees_with_tf_records(session_view session, object_id id, const shard_index& index,
                                                 scan_pace, std::uint64_t) {
  const std::uint64_t size = index.header().shard_size, records = index.header().samples;
  if (records == 0) return size == 0;
  constexpr std::uint64_t places = 6;
  object_bytes bytes;
  for (std::uint64_t i = 0; i <= places; ++i) {
    const auto record = static_cast<std::uint32_t>((records - 1) * i / places);
    const std::uint64_t at = index.offset(record);
    if (at < tf_header_size || index.size(record) < tf_footer_size) return false;
    bytes = session.range(id, at - tf_header_size, tf_header_size, std::move(bytes));
    const tf_header head(bytes);
    if (!head.intact || head.size != index.size(record) - tf_footer_size) return false;
  }
  return index.offset(0) == tf_header_size && index.end(static_cast<std::uint32_t>(records - 1)) == size;
}

/// Compares an index with the headers of the first and the last record.
[[nodiscard]] inline bool has_tf_ends(session_view session, object_id id, const shard_index& index) {
  if (index.header().samples == 0) return true;
  const auto last = static_cast<std::uint32_t>(index.header().samples - 1);
  object_bytes bytes;
  for (const std::uint32_t record : {std::uint32_t{0}, last}) {
    bytes = session.range(id, index.offset(record) - tf_header_size, tf_header_size, std::move(bytes));
    const tf_header head(bytes);
    if (!head.intact || head.size != index.size(record) - tf_footer_size) return false;
  }
  return index.offset(0) == tf_header_size;
}

/// Files of TFRecord.
[[nodiscard]] inline const shard_kind& tf_record_files() noexcept {
  static constexpr shard_kind kind{"tfrecord", true, &index_tf_records, &agrees_with_tf_records,
                                   &has_tf_ends};
  return kind;
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/tfrecord.hpp

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

}  // namespace detail

/// The source that `tfrecord` makes of files.
template <storage Storage>
class tfrecord_source : public opens_as_plan<tfrecord_source<Storage>> {
  using file_set = detail::shard_set<Storage>;

 public:
  using penstock_part = source_tag;
  static constexpr std::string_view source_name = "tfrecord";
  using reader = detail::shard_reader<Storage, detail::show_tf_records>;
  using element = typename reader::element;

  tfrecord_source(Storage where, const tfrecord_options& options)
      : files_(new const file_set(std::move(where), rules_of(options))), check_(options.check) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return files_->shards.samples(); }
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept {
    return files_->shards.starts();
  }
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return files_->shards; }
  /// The files of which only the records before some damage are in the dataset; see `on_damaged_shard`.
  [[nodiscard]] std::span<const damaged_shard> damaged_shards() const noexcept { return files_->damages; }
  /// Covers each file's name and size, and where its records are.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return mix64(files_->shards.fingerprint() ^ 0x74667265636f7264);
  }
  [[nodiscard]] std::string describe() const {
    if constexpr (requires {
                    { files_->where.describe() } -> std::convertible_to<std::string>;
                  })
      return files_->describe(files_->where.describe());
    else
      return files_->describe({});
  }
  [[nodiscard]] reader connect(const projection& used = {}) const { return {files_, used, {check_}}; }

 private:
  [[nodiscard]] static detail::index_rules rules_of(const tfrecord_options& options) {
    if (options.index == index_policy::dali || options.index == index_policy::energon)
      throw error(errc::argument,
                  "tfrecord makes its own indexes; index_policy::dali and energon are for tar shards");
    return {options.index,           options.threads,      0,
            options.scan_gap,        options.index_folder, &detail::tf_record_files(),
            options.on_damaged_shard};
  }

  shared<const file_set> files_;
  bool check_;
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
  return {detail::is_data_folder(path) ? file(detail::tfrecord_paths(path)) : detail::files_of(path),
          options};
}
template <detail::pattern_text Text>
[[nodiscard]] tfrecord_source<file> tfrecord(const Text& pattern, const named_split& which,
                                             const tfrecord_options& options = {}) {
  return {file(detail::tfrecord_paths(detail::to_pattern(pattern), &which)), options};
}
[[nodiscard]] inline tfrecord_source<file> tfrecord(std::vector<std::string> paths,
                                                    const tfrecord_options& options = {}) {
  return {file(std::move(paths)), options};
}

/// TFRecord files for `dataset`, recognised by the checksum of the first record's size.
struct tfrecord_format {
  static constexpr std::string_view name = "tfrecord";
  using sources = std::variant<tfrecord_source<file>>;
  template <storage Storage>
  using stored_sources = std::variant<tfrecord_source<Storage>>;

  tfrecord_options options = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) { return there.fit_of(&is_tfrecord); }
  [[nodiscard]] sources open(const dataset_listing& there) const {
    return tfrecord(there.paths_of(&is_tfrecord), options);
  }
  template <storage Storage>
  [[nodiscard]] stored_sources<Storage> open_in(Storage where, const dataset_listing&) const {
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

// ---- penstock/source/tfrecord_stream.hpp

namespace penstock::inline v0_1 {

/// Options of `tfrecord_stream`.
struct tfrecord_stream_options {
  /// The maximum bytes of one record.
  std::uint64_t limit = 1_GiB;
  /// As in `webdataset_stream_options`.
  std::uint64_t read_ahead = 8_MiB;
};

namespace detail {

/// Files of TFRecord, of which a zlib stream is told by its first record's checksum alone.
[[nodiscard]] inline const stream_kind& tf_record_streams() noexcept {
  static constexpr stream_kind kind{[](bytes_view head) {
                                      return head.size() >= tf_header_size &&
                                             tf_header(head.first(tf_header_size)).intact;
                                    },
                                    true};
  return kind;
}

/// Reads the records of files one after another.
class tf_stream_reader : public shard_sequence {
 public:
  tf_stream_reader(shared<stream_shards> set, unpacker_calls unpack, forward_pieces* objects)
      : shard_sequence(std::move(set), unpack, objects, tf_record_streams()) {}

  [[nodiscard]] bool next(std::string& payload) {
    return next_of([] {}, [&](const std::string&) { return read(payload); }, [this] { close_input(); });
  }
  void rewind() noexcept {
    close_input();
    rewind_shards();
  }
  void seek(source_mark place) {
    rewind();
    std::string passed;
    seek_to(place, [&] { return next(passed); });
  }

 private:
  /// False at the end of the file.
  bool read(std::string& payload) {
    const std::uint64_t begin = input().offset();
    const auto cut_off = [&](std::uint64_t size, std::uint64_t got) {
      tf_record_cut_off(given(), size, got, begin);
    };
    std::array<std::byte, tf_header_size> head;
    if (const std::size_t got = input().read(head); got == 0) {
      input().drain();
      close_input();
      return false;
    } else if (got < head.size()) {
      if (begin == 0) refuse_begin(bytes_view(head).first(got));
      cut_off(tf_header_size + tf_footer_size, got);
    }
    const tf_header header(head);
    if (!header.intact) {
      if (begin == 0) refuse_begin(head);
      tf_header_damaged(given(), begin);
    }
    if (header.size > set().limit)
      throw error(errc::limit, {"record ", given(), " has ", header.size, " bytes, and the limit is ",
                                set().limit, "; raise it with tfrecord_stream_options{.limit = ...}"})
          .at_offset(begin);
    const std::size_t size = to_size(header.size);
    // A header may announce more bytes than there are, so memory grows only as bytes arrive.
    payload.clear();
    while (payload.size() != size) {
      const std::size_t done = payload.size(),
                        some = std::min(size - done, std::max<std::size_t>(1_MiB, done));
      payload.resize(done + some);
      const std::size_t got = input().read(bytes_to_write(payload).subspan(done));
      if (got < some) cut_off(size + tf_footer_size, done + got);
    }
    std::array<std::byte, tf_footer_size> footer;
    if (const std::size_t got = input().read(footer); got < footer.size())
      cut_off(size + tf_footer_size, size + got);
    try {
      check_tf_payload(masked_crc(bytes_of(payload)), footer);
    } catch (error& e) {
      e.at_offset(begin + tf_header_size).for_key(text({"record ", given()}));
      throw;
    }
    return true;
  }
  /// With more of the file, which may show what it is.
  [[noreturn]] void refuse_begin(bytes_view head) {
    std::array<std::byte, 512> room;
    std::copy(head.begin(), head.end(), room.begin());
    const std::size_t more = input().read(mutable_bytes(room).subspan(head.size()));
    not_tf_records(bytes_view(room).first(head.size() + more), set().source_name);
  }
  [[nodiscard]] static mutable_bytes bytes_to_write(std::string& text) noexcept {
    return {reinterpret_cast<std::byte*>(text.data()), text.size()};
  }
};

}  // namespace detail

/// The source that `tfrecord_stream` makes of files in a storage.
template <storage Storage, unpacker... Unpack>
class tfrecord_stream_source : public opens_as_plan<tfrecord_stream_source<Storage, Unpack...>> {
  using session_type = typename Storage::session;

 public:
  using penstock_part = source_tag;
  using element = std::string;
  static constexpr std::string_view source_name = "tfrecord_stream";
  static constexpr bool seekable = true;

  class reader {
   public:
    [[nodiscard]] bool next(element& e) { return state_->records.next(e); }
    void rewind(std::uint64_t) noexcept { state_->records.rewind(); }
    [[nodiscard]] source_mark mark() const noexcept { return state_->records.mark(); }
    /// Opens the marked file and reads past the records already delivered; earlier files are not touched.
    void seek(std::uint64_t, source_mark place) { state_->records.seek(place); }
    /// That of the session.
    [[nodiscard]] session_report report() const { return report_of(std::as_const(state_->session)); }
    /// Ends the session's reads. Any thread.
    void cancel_reads() const noexcept { state_->pieces.end(); }

   private:
    friend class tfrecord_stream_source;

    // Keeps its address when the reader is moved.
    struct state {
      state(const Storage& where, shared<detail::stream_shards> set, std::uint64_t ahead)
          : session(where.connect()),
            pieces(detail::forward_session(session), set->names.size(), ahead),
            records(std::move(set), unpack.calls(), &pieces) {}
      session_type session;
      detail::forward_pieces pieces;
      detail::unpackers<Unpack...> unpack;
      detail::tf_stream_reader records;
    };

    reader(const Storage& where, shared<detail::stream_shards> set, std::uint64_t ahead)
        : state_(std::make_unique<state>(where, std::move(set), ahead)) {}

    std::unique_ptr<state> state_;
  };

  tfrecord_stream_source(Storage where, tfrecord_stream_options options)
      : storage_(std::move(where)),
        ahead_(options.read_ahead),
        set_(std::make_shared<detail::stream_shards>(
            std::vector<std::string>(storage_.names().begin(), storage_.names().end()), options.limit, 0,
            true, source_name)) {}

  [[nodiscard]] std::string describe() const { return set_->describe(); }
  /// Covers the files' names without their folders: their contents are not known until they are read.
  [[nodiscard]] std::uint64_t fingerprint() const { return set_->fingerprint(); }
  [[nodiscard]] reader connect() const { return reader(storage_, set_, ahead_); }

 private:
  Storage storage_;
  std::uint64_t ahead_;
  shared<detail::stream_shards> set_;
};

/// The records of TFRecord files, read from beginning to end: for files that are compressed as a whole, as
/// TensorFlow does with "GZIP" and "ZLIB". If files are not compressed, `tfrecord` can do more: shuffle,
/// resume on a different number of ranks, read in parallel.
///
///     auto packed = tfrecord_stream<unpack_gzip>("train-{00..15}.tfrecord.gz") | decode<identity>;
///
/// In: a pattern of paths, which is `file`, or any storage; the unpackers that may be needed, as template
/// arguments.
/// The compression is recognised from a file's first bytes; its name is ignored. Out: a record's payload, as
/// a `std::string`.
/// Kind: a forward source; deterministic and resumable: a resumed run opens the file where it stopped and
/// reads past the records already delivered; earlier files are not touched. One file is open at a time.
/// Cost per sample: its bytes are unpacked and copied once out of a window, and its checksum. No allocation
/// in the steady state if records do not grow. Memory: `read_ahead`, and what the unpackers need, plus the
/// records, each of at most `limit`.
/// Threads: one reads at a time, all evaluate.
/// Errors: those of `tfrecord`, thrown when the run reaches the place; offsets are in the unpacked file. An
/// error of a later stage has the position in the sequence, but neither file nor record.
/// errc::argument for a compression without an unpacker, with what to write; errc::limit for a record beyond
/// `limit`, before its bytes are read.
/// Source: tensorflow, tsl/lib/io/record_reader.cc.
template <unpacker... Unpack, storage Storage>
[[nodiscard]] tfrecord_stream_source<Storage, Unpack...> tfrecord_stream(
    Storage where, tfrecord_stream_options options = {}) {
  return {std::move(where), options};
}
template <unpacker... Unpack, detail::pattern_text Text>
[[nodiscard]] tfrecord_stream_source<file, Unpack...> tfrecord_stream(const Text& pattern,
                                                                      tfrecord_stream_options options = {}) {
  return {detail::files_of(detail::to_pattern(pattern)), options};
}

/// From a list of paths, in which braces are not expanded.
template <unpacker... Unpack>
[[nodiscard]] tfrecord_stream_source<file, Unpack...> tfrecord_stream(std::vector<std::string> paths,
                                                                      tfrecord_stream_options options = {}) {
  return {file(std::move(paths)), options};
}

}  // namespace penstock::inline v0_1

// ---- penstock/source/tfrecord_writer.hpp

namespace penstock::inline v0_1 {

/// Writes a TFRecord file, which TensorFlow and `tfrecord` read.
///
///     tfrecord_writer out("train-00000-of-00001.tfrecord");
///     out.write(tf_example_bytes({{"label", 7}, {"text", "seven"}}));
///     out.close();
///
/// In: the path, and the payload of each record, mostly of `tf_example_bytes`. The file appears under its
/// name, flushed to disk, at `close`; without it nothing is left. Cost: one copy of each payload into a
/// buffer of 1 MiB, or none for larger ones, and its checksum.
/// Errors: errc::io with the path if the file cannot be written, and then nothing is left of it; errc::state
/// after `close` and after errc::io.
/// Threads: one at a time. Source: tensorflow, tsl/lib/io/record_writer.cc.
class tfrecord_writer {
 public:
  explicit tfrecord_writer(std::string path) : file_(std::in_place, std::move(path)) {}

  /// Appends a record.
  void write(bytes_view payload) {
    check_open();
    std::array<std::byte, detail::tf_header_size> head;
    detail::store_little<std::uint64_t>(head.data(), payload.size());
    detail::store_little<std::uint32_t>(head.data() + 8, detail::masked_crc(bytes_view(head).first(8)));
    std::array<std::byte, detail::tf_footer_size> footer;
    detail::store_little<std::uint32_t>(footer.data(), detail::masked_crc(payload));
    try {
      file_->write(head);
      file_->write(payload);
      file_->write(footer);
    } catch (...) {
      file_.reset();  // what was written ends within a record
      throw;
    }
    ++records_;
  }
  void write(std::string_view payload) { write(bytes_of(payload)); }

  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }

  /// Makes the file complete and visible.
  void close() {
    check_open();
    file_->commit();
    file_.reset();
  }

 private:
  void check_open() const {
    if (!file_) throw error(errc::state, "this tfrecord_writer is closed");
  }

  std::optional<detail::output_file> file_;
  std::uint64_t records_ = 0;
};

}  // namespace penstock::inline v0_1

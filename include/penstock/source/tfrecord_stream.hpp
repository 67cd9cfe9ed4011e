// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<isa-l/crc.h>)
#error "penstock/source/tfrecord_stream.hpp needs ISA-L: link penstock::tfrecord"
#endif

#include <penstock/codec/concepts.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/records/shard_stream.hpp>
#include <penstock/source/records/stream_source.hpp>
#include <penstock/source/records/tf_records.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>

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
  using element = std::string;

  tf_stream_reader(shared<stream_shards> set, unpacker_calls unpack, forward_pieces* objects)
      : shard_sequence(std::move(set), unpack, objects, tf_record_streams()) {}

  [[nodiscard]] bool next(std::string& payload) {
    return next_of([] {}, [&](const std::string&) { return read(payload); }, [this] { close(); });
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
      close();
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
class tfrecord_stream_source
    : public detail::stream_source<
          tfrecord_stream_source<Storage, Unpack...>,
          detail::stream_reader<detail::tf_stream_reader, detail::stored_shards<Storage>, Unpack...>> {
 public:
  static constexpr std::string_view source_name = "tfrecord_stream";

  tfrecord_stream_source(const Storage& where, tfrecord_stream_options options)
      : tfrecord_stream_source::stream_source({where, options.read_ahead}, detail::shard_names(where),
                                              options.limit) {}
};

/// The records of TFRecord files, read from beginning to end: for files that are compressed as a whole, as
/// TensorFlow does with "GZIP" and "ZLIB". If files are not compressed, `tfrecord` can do more: shuffle,
/// resume on a different number of ranks, read in parallel.
///
///     auto packed = tfrecord_stream<unpack_gzip>("train-{00..15}.tfrecord.gz") | decode<identity>;
///
/// In: a pattern of paths, or a list in which braces are not expanded, which is `file`, or any storage; the
/// unpackers that may be needed, as template arguments.
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
  return {where, options};
}
template <unpacker... Unpack>
[[nodiscard]] tfrecord_stream_source<file, Unpack...> tfrecord_stream(detail::given_paths paths,
                                                                      tfrecord_stream_options options = {}) {
  return {file(std::move(paths.names)), options};
}

}  // namespace penstock::inline v0_1

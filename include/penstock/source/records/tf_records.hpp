// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<isa-l/crc.h>)
#error "penstock/source/records/tf_records.hpp needs ISA-L: link penstock::tfrecord"
#endif

#include <penstock/core/known_formats.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/source/files/packed_format.hpp>
#include <penstock/source/records/index_builder.hpp>
#include <penstock/source/records/shard_kind.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <isa-l/crc.h>

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
  return reading_object(session, id, name, [&] {
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
  });
}

/// Compares an index, which has records, with their headers at so many places and at the beginning.
[[nodiscard]] inline bool has_tf_headers(session_view session, object_id id, const shard_index& index,
                                         std::uint64_t places) {
  object_bytes bytes;
  for (std::uint64_t i = 0; i <= places; ++i) {
    const auto record = static_cast<std::uint32_t>((index.header().samples - 1) * i / places);
    const std::uint64_t at = index.offset(record);
    if (at < tf_header_size || index.size(record) < tf_footer_size) return false;
    bytes = session.range(id, at - tf_header_size, tf_header_size, std::move(bytes));
    const tf_header head(bytes);
    if (!head.intact || head.size != index.size(record) - tf_footer_size) return false;
  }
  return index.offset(0) == tf_header_size;
}
/// Compares an index with the headers of the first, the last, and a few other records.
[[nodiscard]] inline bool agrees_with_tf_records(session_view session, object_id id, const shard_index& index,
                                                 scan_pace, std::uint64_t) {
  const std::uint64_t size = index.header().shard_size, records = index.header().samples;
  if (records == 0) return size == 0;
  return has_tf_headers(session, id, index, 6) && index.end(static_cast<std::uint32_t>(records - 1)) == size;
}
/// Compares an index with the headers of the first and the last record.
[[nodiscard]] inline bool has_tf_ends(session_view session, object_id id, const shard_index& index) {
  return index.header().samples == 0 || has_tf_headers(session, id, index, 1);
}

/// Files of TFRecord.
[[nodiscard]] inline const shard_kind& tf_record_files() noexcept {
  static constexpr shard_kind kind{"tfrecord", true, &index_tf_records, &agrees_with_tf_records,
                                   &has_tf_ends};
  return kind;
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<isa-l/crc.h>)
#error "penstock/source/tfrecord_writer.hpp needs ISA-L: link penstock::tfrecord"
#endif

#include <penstock/source/records/tf_records.hpp>
#include <penstock/storage/local/output_file.hpp>

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

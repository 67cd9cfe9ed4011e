// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/tables/avro_record.hpp>
#include <penstock/source/tables/avro_schema.hpp>
#include <penstock/source/tables/read_avro_schema.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// Replaces `into` by what a block's bytes were before they were packed by a codec, at most `limit` bytes.
/// Throws errc::argument for a codec that it does not know.
using avro_unpacker = void (*)(std::string_view codec, bytes_view packed, std::uint64_t limit,
                               std::vector<std::byte>& into);

/// Reads the records of an Avro object container file, one after another.
///
/// Source: Apache Avro 1.12, "Specification", "Object Container Files" and "Binary Encoding".
class avro_file {
 public:
  /// Throws errc::format for what is no such file, and errc::argument for one that is packed if there is no
  /// unpacker. A block may have `limit` bytes.
  explicit avro_file(bytes_view file, avro_unpacker unpack = nullptr, std::uint64_t limit = 64_MiB);

  /// What the file's metadata say; empty if they do not.
  [[nodiscard]] std::string_view metadata(std::string_view key) const noexcept;
  /// The next record, valid until the next call; none at the end. Throws errc::format for a file that is
  /// damaged or cut off.
  [[nodiscard]] std::optional<avro_record> next();

 private:
  void next_block();
  [[nodiscard]] avro_walk walk_file() noexcept { return {&schema_, file_, at_, &steps_}; }

  bytes_view file_;
  avro_unpacker unpack_;
  std::uint64_t limit_;
  std::vector<std::pair<std::string_view, bytes_view>> metadata_;
  std::string_view codec_;
  avro_schema schema_;
  bytes_view sync_;
  std::size_t at_ = 0;  // in the file
  std::vector<std::byte> unpacked_;
  bytes_view block_;
  std::size_t block_at_ = 0;     // in the block
  std::size_t block_begin_ = 0;  // in the file
  std::uint64_t left_ = 0;       // records of the block
  std::uint64_t steps_ = 0;
};

inline avro_file::avro_file(bytes_view file, avro_unpacker unpack, std::uint64_t limit)
    : file_(file), unpack_(unpack), limit_(limit) {
  constexpr std::string_view magic("Obj\1", 4);
  constexpr std::size_t sync_size = 16, max_entries = 1000;
  if (!text_of(file_).starts_with(magic))
    throw not_a("a container of Avro", file_, {"it does not begin with 'Obj'"});
  avro_walk walk = walk_file();
  walk.at = magic.size();
  while (std::int64_t count = walk.number()) {
    if (count < 0) {
      (void)walk.number();  // the size in bytes
      count = count < -static_cast<std::int64_t>(max_entries) ? static_cast<std::int64_t>(max_entries) + 1
                                                              : -count;
    }
    for (; count != 0; --count) {
      if (metadata_.size() == max_entries) walk.damaged("the container of Avro has too many metadata");
      const std::string_view key = text_of(walk.sized());
      metadata_.emplace_back(key, walk.sized());
    }
  }
  sync_ = walk.take(sync_size);
  at_ = walk.at;
  codec_ = metadata("avro.codec");
  if (codec_.empty()) codec_ = "null";
  if (codec_ != "null" && unpack_ == nullptr)
    throw error(errc::argument,
                {"the container of Avro is packed with '", codec_, "', which is not read here"});
  const std::string_view json = metadata("avro.schema");
  try {
    schema_ = read_avro_schema(json);
  } catch (error& e) {
    if (!e.offset()) e.at_offset(0);
    const auto begin = json.empty() ? 0 : bytes_of(json).data() - file_.data();
    e.within("the schema", static_cast<std::uint64_t>(begin));
    throw;
  }
  if (schema_[schema_.root].kind != avro_kind::record)
    throw error(errc::format, "the container of Avro has values that are no records");
}

inline std::string_view avro_file::metadata(std::string_view key) const noexcept {
  for (const auto& [name, value] : metadata_)
    if (name == key) return text_of(value);
  return {};
}

inline void avro_file::next_block() {
  avro_walk walk = walk_file();
  const std::int64_t count = walk.number();
  if (count < 0) walk.damaged("a block of Avro has a number of records below zero");
  const bytes_view packed = walk.sized();
  block_begin_ = walk.at - packed.size();
  const bytes_view sync = walk.take(sync_.size());
  if (!std::ranges::equal(sync, sync_)) {
    walk.at -= sync_.size();
    walk.damaged("a block of Avro does not end with the file's marker");
  }
  if (codec_ == "null") {
    if (packed.size() > limit_)
      throw error(errc::limit, {"a block of Avro has ", packed.size(), " bytes; ", limit_, " is the limit"})
          .at_offset(block_begin_);
    block_ = packed;
  } else {
    try {
      unpack_(codec_, packed, limit_, unpacked_);
    } catch (error& e) {
      if (!e.offset()) e.at_offset(block_begin_);
      throw;
    }
    block_ = bytes_view(unpacked_.data(), unpacked_.size());
  }
  if (static_cast<std::uint64_t>(count) > block_.size()) {
    walk.at = block_begin_;
    walk.damaged("a block of Avro has more records than bytes");
  }
  at_ = walk.at;
  block_at_ = 0;
  left_ = static_cast<std::uint64_t>(count);
  // Each byte of a manifest is passed over up to four times, with three steps at most.
  constexpr std::uint64_t some = 1 << 16, per_byte = 16;
  steps_ = some + per_byte * block_.size();
}

inline std::optional<avro_record> avro_file::next() {
  while (left_ == 0) {
    if (block_at_ != block_.size())
      throw error(errc::format, "a block of Avro has bytes behind its last record: the file is damaged")
          .at_offset(block_begin_);
    if (at_ == file_.size()) return std::nullopt;
    next_block();
  }
  try {
    avro_record made({&schema_, block_, block_at_, &steps_}, schema_.root);
    block_at_ = made.end();
    --left_;
    return made;
  } catch (error& e) {
    e.within("a block", block_begin_);
    throw;
  }
}

}  // namespace penstock::inline v0_1::detail

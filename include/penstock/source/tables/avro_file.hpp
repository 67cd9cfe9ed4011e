// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/source/files/json_description.hpp>
#include <penstock/source/tables/avro_record.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <utility>

namespace penstock::inline v0_1::detail {

struct avro_schema_maker {
  avro_schema& made;
  std::map<std::string, std::size_t, std::less<>> named = {};

  [[noreturn, gnu::cold]] static void fail(std::string_view what) {
    throw error(errc::format, {"the schema of Avro has ", what, ": the file is damaged"});
  }
  [[nodiscard]] static const nlohmann::json* find(const nlohmann::json& object, const char* name) {
    const auto found = object.find(name);  // the end for what is no object
    return found == object.end() ? nullptr : &*found;
  }
  [[nodiscard]] static std::optional<avro_kind> plain(std::string_view name) noexcept {
    constexpr std::pair<std::string_view, avro_kind> known[] = {
        {"null", avro_kind::null},   {"boolean", avro_kind::boolean}, {"int", avro_kind::int32},
        {"long", avro_kind::int64},  {"float", avro_kind::float32},   {"double", avro_kind::float64},
        {"bytes", avro_kind::bytes}, {"string", avro_kind::string}};
    for (const auto& [called, kind] : known)
      if (called == name) return kind;
    return std::nullopt;
  }
  [[nodiscard]] static std::string full_name(std::string_view name, std::string_view space) {
    if (space.empty() || name.find('.') != std::string_view::npos) return std::string(name);
    return text({space, ".", name});
  }
  [[nodiscard]] static std::string text_of(const nlohmann::json& object, const char* name) {
    const nlohmann::json* const found = find(object, name);
    return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
  }
  // -1 if the object does not have it.
  [[nodiscard]] static std::int64_t number_of(const nlohmann::json& object, const char* name) {
    const nlohmann::json* const found = find(object, name);
    if (found == nullptr) return -1;
    constexpr std::uint64_t maximum = std::numeric_limits<std::int64_t>::max();
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() > maximum)
      fail(text({"'", name, "' that is no number from 0 on"}));
    return found->get<std::int64_t>();
  }
  [[nodiscard]] std::size_t add(avro_kind kind) {
    made.types.emplace_back().kind = kind;
    return made.types.size() - 1;
  }

  // The number of a type; `space` is the namespace around it.
  [[nodiscard]] std::size_t type(const nlohmann::json& said, std::string_view space) {
    if (said.is_string()) {
      const auto name = said.get<std::string>();
      if (const auto kind = plain(name)) return add(*kind);
      const auto found = named.find(full_name(name, space));
      if (found == named.end()) fail(text({"the type '", name, "', which it does not define"}));
      return found->second;
    }
    if (said.is_array()) {
      const std::size_t number = add(avro_kind::one_of);
      for (const nlohmann::json& one : said) add_field(number, {}, -1, one, space);
      return number;
    }
    const nlohmann::json* const what = find(said, "type");
    if (what == nullptr) fail("a type that is none");
    if (!what->is_string()) return type(*what, space);
    const auto kind = what->get<std::string>();
    if (kind == "array" || kind == "map") {
      const nlohmann::json* const item = find(said, kind == "array" ? "items" : "values");
      if (item == nullptr) fail("an array or a map of nothing");
      const std::size_t number = add(kind == "array" ? avro_kind::array : avro_kind::map);
      add_field(number, {}, -1, *item, space);
      return number;
    }
    const bool is_record = kind == "record" || kind == "error";
    if (!is_record && kind != "enum" && kind != "fixed") return type(*what, space);
    const std::size_t number = add(is_record        ? avro_kind::record
                                   : kind == "enum" ? avro_kind::enumeration
                                                    : avro_kind::fixed);
    const std::string name = text_of(said, "name"), own = text_of(said, "namespace");
    std::string full = full_name(name, own.empty() ? space : own);
    const std::size_t dot = full.rfind('.');
    const std::string inner(full, 0, dot == full.npos ? 0 : dot);
    named.emplace(std::move(full), number);
    if (kind == "fixed") {
      const std::int64_t size = number_of(said, "size");
      if (size < 0) fail("a fixed type without a size");
      made.types[number].size = static_cast<std::uint64_t>(size);
    }
    if (!is_record) return number;
    const nlohmann::json* const fields = find(said, "fields");
    if (fields == nullptr || !fields->is_array()) fail("a record without fields");
    for (const nlohmann::json& field : *fields) {
      const nlohmann::json* const of_field = find(field, "type");
      if (of_field == nullptr) fail("a field without a type");
      add_field(number, text_of(field, "name"), number_of(field, "field-id"), *of_field, inner);
    }
    return number;
  }
  void add_field(std::size_t to, std::string name, std::int64_t id, const nlohmann::json& said,
                 std::string_view space) {
    const std::size_t its = type(said, space);
    made.types[to].fields.push_back({std::move(name), id, its});
  }
};

/// Reads a schema of Avro. Throws errc::format for a text that is none, with the offset if it is no JSON, and
/// errc::limit for one of more than a MiB.
///
/// Source: Apache Avro 1.12, "Specification", "Schema Declaration".
[[nodiscard]] inline avro_schema read_avro_schema(std::string_view json) {
  constexpr std::size_t maximum = std::size_t{1} << 20;
  constexpr int levels = 64;
  if (json.size() > maximum)
    throw error(errc::limit, {"the schema of Avro has ", json.size(), " bytes; ", maximum, " is the limit"});
  avro_schema made;
  made.root = avro_schema_maker{made}.type(parse_description(json, levels), {});
  return made;
}

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
  explicit avro_file(bytes_view file, avro_unpacker unpack = nullptr, std::uint64_t limit = 64_MiB)
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

  /// What the file's metadata say; empty if they do not.
  [[nodiscard]] std::string_view metadata(std::string_view key) const noexcept {
    for (const auto& [name, value] : metadata_)
      if (name == key) return text_of(value);
    return {};
  }
  /// The next record, valid until the next call; none at the end. Throws errc::format for a file that is
  /// damaged or cut off.
  [[nodiscard]] std::optional<avro_record> next() {
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

 private:
  void next_block() {
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

}  // namespace penstock::inline v0_1::detail

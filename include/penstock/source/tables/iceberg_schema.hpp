// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_type.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/files/json_description.hpp>
#include <penstock/source/tables/arrow_cpp.hpp>
#include <penstock/storage/reads/arrow_errors.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The most bytes that a file of a table's metadata may have.
inline constexpr std::uint64_t max_iceberg_bytes = 512_MiB;

/// Unpacks "deflate" and "zstandard", as Avro has them, and "gzip"; an `avro_unpacker`.
inline void iceberg_unpack(std::string_view codec, bytes_view packed, std::uint64_t limit,
                           std::vector<std::byte>& into) {
  arrow::util::GZipCodecOptions zlib;
  zlib.gzip_format = codec == "gzip" ? arrow::util::GZipFormat::GZIP : arrow::util::GZipFormat::DEFLATE;
  if (codec != "deflate" && codec != "zstandard" && codec != "gzip")
    throw error(errc::argument,
                {"the metadata are packed with '", codec, "'; null, deflate and zstandard are read"});
  const auto work = [&]() -> arrow::Status {
    std::unique_ptr<arrow::util::Codec> made;
    if (codec == "zstandard") {
      ARROW_ASSIGN_OR_RAISE(made, arrow::util::Codec::Create(arrow::Compression::ZSTD));
    } else {
      ARROW_ASSIGN_OR_RAISE(made, arrow::util::Codec::Create(arrow::Compression::GZIP, zlib));
    }
    ARROW_ASSIGN_OR_RAISE(const auto unpacker, made->MakeDecompressor());
    constexpr std::uint64_t least = 4096, likely = 4;
    into.resize(to_size(std::min(limit, std::max(least, likely * packed.size()))));
    std::size_t in = 0, out = 0;
    while (!unpacker->IsFinished()) {
      ARROW_ASSIGN_OR_RAISE(const auto done,
                            unpacker->Decompress(static_cast<std::int64_t>(packed.size() - in),
                                                 reinterpret_cast<const std::uint8_t*>(packed.data()) + in,
                                                 static_cast<std::int64_t>(into.size() - out),
                                                 reinterpret_cast<std::uint8_t*>(into.data()) + out));
      in += static_cast<std::size_t>(done.bytes_read);
      out += static_cast<std::size_t>(done.bytes_written);
      if (unpacker->IsFinished()) break;
      if (out == into.size() || done.need_more_output) {
        if (into.size() == limit)
          throw error(errc::limit, {"the metadata unpack to more than ", limit, " bytes"});
        into.resize(to_size(std::min<std::uint64_t>(limit, 2 * into.size())));
      } else if (done.bytes_read == 0 && done.bytes_written == 0) {
        return arrow::Status::IOError("they are cut off");
      }
    }
    into.resize(out);
    return arrow::Status::OK();
  };
  const arrow::Status done = work();
  if (!done.ok())
    throw error(errc::format, {"the metadata cannot be unpacked: ", arrow_message(done.message())});
}

/// A type, and the numbers of what it consists of, depth first, of which parquet_files has need; -1 for none.
struct iceberg_type {
  arrow_type type;
  std::vector<int> numbers;
};

/// The type that a schema calls so: "decimal(9, 2)", "fixed[16]", "timestamptz". Throws errc::argument for
/// one that is not known.
[[nodiscard]] inline arrow_type iceberg_plain_type(const std::string& called) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 15> known{
      {{"boolean", "b"},
       {"int", "i"},
       {"long", "l"},
       {"float", "f"},
       {"double", "g"},
       {"date", "tdD"},
       {"time", "ttu"},
       {"timestamp", "tsu:"},
       {"timestamptz", "tsu:UTC"},
       {"timestamp_ns", "tsn:"},
       {"timestamptz_ns", "tsn:UTC"},
       {"string", "u"},
       {"uuid", "w:16"},
       {"binary", "z"},
       {"unknown", "n"}}};
  for (const auto& [iceberg, arrow] : known)
    if (called == iceberg) return arrow_type::of_format(arrow);
  std::string format;
  if (called.starts_with("decimal(") && called.ends_with(')')) format = "d:" + called.substr(8);
  if (called.starts_with("fixed[") && called.ends_with(']')) format = "w:" + called.substr(6);
  if (!format.empty()) {
    format.pop_back();
    std::erase(format, ' ');
    arrow_type made = arrow_type::of_format(format);
    if (made.layout == arrow_layout::fixed) return made;
  }
  throw error(errc::argument, {"a column has the type '", called, "' of Iceberg, which is not known here"});
}

/// A type as the metadata have it.
[[nodiscard]] inline iceberg_type iceberg_type_of(const nlohmann::json& said, int level = 0) {
  constexpr int max_levels = 64;
  if (level == max_levels)
    throw error(errc::limit, {"the table's schema has more than ", max_levels, " levels"});
  if (!said.is_object()) return {iceberg_plain_type(said.get<std::string>()), {}};
  const auto kind = said.at("type").get<std::string>();
  iceberg_type made;
  const auto inner = [&](const char* which) {
    iceberg_type one = iceberg_type_of(said.at(which), level + 1);
    one.type.name = which;
    made.numbers.push_back(number_at<int>(said, (std::string(which) + "-id").c_str()));
    made.numbers.insert(made.numbers.end(), one.numbers.begin(), one.numbers.end());
    return std::move(one.type);
  };
  if (kind == "struct") {
    made.type = arrow_type::of_format("+s");
    for (const nlohmann::json& field : said.at("fields")) {
      if (field.contains("initial-default") && !field["initial-default"].is_null())
        throw error(errc::argument, {"the column '", field.at("name").get<std::string>(),
                                     "' has a default value, of format version 3, which is not read here"});
      iceberg_type one = iceberg_type_of(field.at("type"), level + 1);
      one.type.name = field.at("name").get<std::string>();
      made.type.children.push_back(std::move(one.type));
      made.numbers.push_back(number_at<int>(field, "id"));
      made.numbers.insert(made.numbers.end(), one.numbers.begin(), one.numbers.end());
    }
  } else if (kind == "list") {
    made.type = arrow_type::of_format("+l");
    made.type.children.push_back(inner("element"));
  } else if (kind == "map") {
    arrow_type entry = arrow_type::of_format("+s");
    made.numbers.push_back(-1);
    entry.children.push_back(inner("key"));
    entry.children.push_back(inner("value"));
    made.type = arrow_type::of_format("+m");
    made.type.children = {std::move(entry)};
  } else {
    throw error(errc::argument, {"a column has the type '", kind, "' of Iceberg, which is not known here"});
  }
  return made;
}

/// A field of a partition spec.
struct iceberg_part {
  int source = 0;  // the column's number
  int number = 0;  // its own
  std::string name, transform;
};

}  // namespace penstock::inline v0_1::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/mds_index.hpp needs nlohmann-json: link penstock::json"
#endif

#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/files/json_description.hpp>
#include <penstock/source/files/whole_file.hpp>
#include <penstock/source/records/mds_shards.hpp>
#include <penstock/storage/concepts.hpp>

#include <nlohmann/json.hpp>

namespace penstock::inline v0_1 {

namespace detail {

/// Reads the JSON of an MDS dataset: its index, and what a shard says of its columns.
class mds_json {
 public:
  [[nodiscard]] static mds_index index(std::string_view text) {
    const nlohmann::json all = parse_description(text);
    if (!all.is_object() || !all.contains("shards") || !all["shards"].is_array())
      fail("the index has no list 'shards'");
    if (!all.contains("version") || all["version"] != 2)
      fail("the index's 'version' is missing or not 2, the only known version");
    mds_index made;
    for (const nlohmann::json& one : all["shards"]) made.shards.push_back(shard(one, made));
    return made;
  }

  /// The columns that a shard, or a shard's entry in the index, describes.
  [[nodiscard]] static std::vector<mds_column> columns(const nlohmann::json& one) {
    const nlohmann::json &names = list(one, "column_names"), &encodings = list(one, "column_encodings"),
                         &sizes = list(one, "column_sizes");
    constexpr std::size_t maximum = 4096;
    if (names.size() > maximum)
      throw error(errc::limit, {"a shard of ", names.size(), " columns; the limit is ", maximum});
    if (names.empty() || names.size() != encodings.size() || names.size() != sizes.size())
      fail(
          "the lists 'column_names', 'column_encodings' and 'column_sizes' are empty or of different "
          "lengths");
    std::vector<mds_column> made;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!names[i].is_string() || !encodings[i].is_string() ||
          encodings[i].get_ref<const std::string&>().empty() ||
          !(sizes[i].is_null() || sizes[i].is_number_unsigned()) ||
          (sizes[i].is_number_unsigned() &&
           sizes[i].get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max()))
        fail("a column has a name or encoding that is not a text, or a size that is no number");
      mds_column column{names[i].get<std::string>(), encodings[i].get<std::string>(),
                        sizes[i].is_null() ? 0 : sizes[i].get<std::uint32_t>()};
      for (const mds_column& other : made)
        if (other.name == column.name) fail("two columns are called '" + column.name.substr(0, 80) + "'");
      made.push_back(std::move(column));
    }
    return made;
  }

  [[nodiscard]] static bool agree(std::string_view config, const std::vector<mds_column>& known) {
    const nlohmann::json described = parse_description(config);
    return described.is_object() && columns(described) == known;
  }

 private:
  [[noreturn]] static void fail(const std::string& what) { throw error(errc::format, what); }

  [[nodiscard]] static const nlohmann::json& list(const nlohmann::json& object, const char* key) {
    if (!object.contains(key) || !object[key].is_array()) fail(std::string("there is no list '") + key + "'");
    return object[key];
  }
  [[nodiscard]] static std::uint64_t number(const nlohmann::json& object, const char* key) {
    return count_at(object, key, "a shard");
  }
  [[nodiscard]] static std::string name_of(const nlohmann::json& file) {
    if (!file.is_object() || !file.contains("basename") || !file["basename"].is_string())
      fail("a shard has no 'basename' that is a text");
    std::string name = file["basename"].get<std::string>();
    if (!stays_in_folder(name) || name.find("://") != std::string::npos)
      fail("the index names a shard outside its folder: '" + name.substr(0, 80) + "'");
    return name;
  }

  [[nodiscard]] static mds_shard shard(const nlohmann::json& one, mds_index& index) {
    if (!one.is_object()) fail("an entry of 'shards' is not an object");
    if (!one.contains("format") || one["format"] != "mds")
      fail("a shard is not of format \"mds\", the only one that is read; write it anew with MDSWriter");
    if (!one.contains("raw_data")) fail("a shard has no 'raw_data'");
    mds_shard made;
    made.name = name_of(one["raw_data"]);
    made.bytes = number(one["raw_data"], "bytes");
    made.samples = number(one, "samples");
    if (one.contains("compression") && one["compression"].is_string())
      made.compression = one["compression"].get<std::string>();
    const bool packed = one.contains("zip_data") && one["zip_data"].is_object();
    if (packed) {
      made.packed_name = name_of(one["zip_data"]);
      made.packed_bytes = number(one["zip_data"], "bytes");
    }
    std::vector<mds_column> list = columns(one);
    const auto known = std::find(index.columns.begin(), index.columns.end(), list);
    made.columns = static_cast<std::size_t>(known - index.columns.begin());
    constexpr std::size_t maximum = 1024;
    if (known == index.columns.end()) index.columns.push_back(std::move(list));
    if (index.columns.size() > maximum)
      throw error(errc::limit, {"shards of more than ", maximum, " different lists of columns"});

    for (const char* const key : {"column_names", "column_encodings", "column_sizes"})
      made.content = hashed(made.content, one[key]);
    for (const char* const key : {"raw_data", "zip_data"})
      if (one.contains(key) && one[key].is_object() && one[key].contains("hashes"))
        made.content = hashed(made.content, one[key]["hashes"]);
    return made;
  }
  [[nodiscard]] static std::uint64_t hashed(std::uint64_t seed, const nlohmann::json& value) {
    const std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return hash_bytes(seed, bytes_of(text));
  }
};

}  // namespace detail

/// Reads the text of an `index.json`. Throws, as `read_mds_index` does, without the file.
[[nodiscard]] inline mds_index mds_index_from_string(std::string_view text) {
  detail::check_index_size(text.size());
  return detail::mds_json::index(text);
}

/// Reads the `index.json` of an MDS dataset.
///
///     const mds_index known = read_mds_index("imagenet/index.json");
///     const std::uint64_t samples_of_the_first = known.shards.at(0).samples;
///
/// In: a path, or a storage of one object, such as `http("https://host/imagenet/index.json")`.
/// Throws, with the file: `errc::io`; `errc::format`, with the offset where it is known, for anything that is
/// not such an index, an unknown version, shards of another format than "mds", names that lead out of the
/// index's folder, two columns of one name, and nesting of more than 16; `errc::limit` for more than 256 MiB,
/// 4,096 columns, or 1,024 different lists of columns.
/// Source: mosaicml-streaming, streaming/base/format/mds/writer.py.
[[nodiscard]] inline mds_index read_mds_index(const std::string& path) {
  const buffer bytes = detail::read_whole_file(path, detail::max_description_bytes, "an index of shards");
  return detail::in_file(path, [&] { return detail::mds_json::index(text_of(bytes.view())); });
}
template <storage Storage>
[[nodiscard]] mds_index read_mds_index(const Storage& where) {
  if (where.names().size() != 1)
    throw error(errc::argument, {"an index is one object, and the storage has ", where.names().size()});
  auto session = where.connect();
  return detail::in_file(where.names()[0], [&] {
    const std::uint64_t size = session.size(0);
    detail::check_index_size(size);
    const object_bytes text = session_view(session).range(0, 0, size);
    return detail::mds_json::index(text_of(text));
  });
}

}  // namespace penstock::inline v0_1

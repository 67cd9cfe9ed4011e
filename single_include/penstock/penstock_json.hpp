// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component json. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock_json.hpp needs nlohmann-json: link penstock::json"
#endif

#include "penstock.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

// ---- penstock/codec/json.hpp

namespace penstock::inline v0_1 {

/// A JSON document of any shape: nlohmann's type.
using json_value = nlohmann::json;

/// JSON documents of any shape.
///
/// In: any byte element. Out: a `json_value`, which is nlohmann's type and owns its contents: extract what a
/// batch needs with `map`, or use `json_field` in the first place. `NaN`, `Infinity` and `-Infinity`, as
/// Python writes them, are numbers (nlohmann's `dump` writes null for them), and half a surrogate pair in a
/// text (`\ud83d`) is U+FFFD. A byte order mark in front is passed over.
/// Kind: pointwise, keeps all guarantees. Cost per sample: nlohmann's, which allocates for each text, list
/// and object. Thread-safe.
/// Throws `errc::format` with the offset if the text is not JSON (RFC 8259, in UTF-8); `errc::limit` for more
/// than `limit` bytes, and for lists and objects nested deeper than `depth`. A value takes up to twenty times
/// the bytes of its text.
///
///     auto widths = lines("boxes.jsonl") | decode<json> |
///                   map([](const json_value& v) { return v["box"][2].get<float>(); });
struct json {
  /// The maximum length of the text in bytes.
  std::uint64_t limit = 64_MiB;
  /// The maximum nesting depth of lists and objects.
  std::uint64_t depth = 128;

  static constexpr std::string_view codec_name = "json";
  static constexpr std::string_view extensions[] = {"json", "jsn"};

  template <byte_element Bytes>
  [[nodiscard]] json_value decode(const Bytes& in, no_scratch&) const {
    const std::string_view text = detail::json_text(as_bytes(in), limit);
    const detail::json_extras extras = detail::check_json_depth(text, depth);
    try {
      if (extras.words || extras.surrogates) return decode_more(std::string(text));
      return json_value::parse(text.data(), text.data() + text.size());
    } catch (const json_value::parse_error& e) {
      detail::json_malformed(text, e.byte == 0 ? 0 : e.byte - 1);
    } catch (const json_value::out_of_range&) {
      throw error(errc::format, "a number in the JSON is beyond the range of double");
    }
  }

 private:
  [[gnu::cold]] static json_value decode_more(std::string text) {
    const auto special = detail::to_plain_json(text);
    std::size_t numbers = 0, next = 0;
    const auto put_special = [&](int, json_value::parse_event_t event, json_value& value) {
      if (event == json_value::parse_event_t::value && value.is_number() && next != special.size() &&
          numbers++ == special[next].first)
        value = special[next++].second;
      return true;
    };
    return json_value::parse(text, put_special);
  }
};

}  // namespace penstock::inline v0_1

// ---- penstock/source/files/json_description.hpp

namespace penstock::inline v0_1::detail {

/// Parses a description that others wrote, nested at most `deepest` deep. Throws `errc::format`, with
/// the offset where it is known.
[[nodiscard]] inline nlohmann::json parse_description(std::string_view text, int deepest = 16) {
  // The parser's message repeats the whole text or number it was reading, so it is cut.
  const auto not_json = [text](const nlohmann::json::exception& e) {
    if (const std::string_view known = known_format(bytes_of(text)); !known.empty() && !text.starts_with('{'))
      return detail::text({"the description is not JSON: it is ", known});
    const std::string_view said = e.what();
    constexpr std::size_t maximum = 300;
    return detail::text(
        {"the description is not JSON: ", said.substr(0, maximum), said.size() > maximum ? "..." : ""});
  };
  // a one-byte bracket becomes an object of 70 bytes
  const auto shallow = [deepest](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
    if (depth > deepest)
      throw error(errc::format, {"the description is nested more than ", deepest, " deep"});
    return true;
  };
  try {
    return nlohmann::json::parse(text.begin(), text.end(), shallow);
  } catch (const nlohmann::json::parse_error& e) {
    throw error(errc::format, not_json(e)).at_offset(e.byte == 0 ? 0 : e.byte - 1);
  } catch (const nlohmann::json::exception& e) {  // a number beyond the range of a double
    throw error(errc::format, not_json(e));
  }
}

/// A whole number of JSON that fits a type. Throws errc::format for what is none, with the name that it has
/// in its object: a conversion would be undefined for 1e99, and truncate others.
template <std::integral T>
[[nodiscard]] T whole_number(const nlohmann::json& value, std::string_view name) {
  if (value.is_number_unsigned()) {
    if (const auto number = value.get<std::uint64_t>(); std::in_range<T>(number))
      return static_cast<T>(number);
  } else if (value.is_number_integer()) {
    if (const auto number = value.get<std::int64_t>(); std::in_range<T>(number))
      return static_cast<T>(number);
  }
  const std::string there = value.is_number() ? value.dump() : value.type_name();
  throw error(errc::format, {"\"", name, "\" should be a whole number of ", 8 * sizeof(T), " bits, and is ",
                             value.is_number() ? "" : "JSON of the type ", there});
}

/// The whole number of this name in an object, which must have it. Throws as `whole_number`.
template <std::integral T>
[[nodiscard]] T number_at(const nlohmann::json& object, const char* name) {
  return whole_number<T>(object.at(name), name);
}

}  // namespace penstock::inline v0_1::detail

// ---- penstock/source/litdata_index.hpp

namespace penstock::inline v0_1 {

/// What the `index.json` of a LitData dataset says.
struct litdata_index {
  mds_index chunks;             ///< with a column for each leaf of a sample
  bool tokens = false;          ///< whether `TokensLoader` wrote it: chunks are tokens, and not samples
  bool rows = false;            ///< chunks are compressed rows of Arrow; others are told by a chunk's end
  bool packed_samples = false;  ///< whether samples are compressed one by one
};

namespace detail {

/// The message for chunks whose samples are rows of an Arrow file.
inline constexpr std::string_view litdata_of_rows =
    "the chunks hold rows of Arrow, as BinaryWriter writes dicts of plain values where pyarrow is installed: "
    "read them with litdata_rows(folder)";

/// Reads the JSON of a LitData dataset.
class litdata_json {
 public:
  static constexpr std::uint64_t max_bytes = 256_MiB;

  [[nodiscard]] static litdata_index index(std::string_view text) {
    const nlohmann::json all = parse_description(text);
    if (!all.is_object() || !all.contains("chunks") || !all["chunks"].is_array() || !all.contains("config") ||
        !all["config"].is_object())
      fail("the index has no list 'chunks' and no object 'config'");
    const nlohmann::json& config = all["config"];
    check(config);
    litdata_index made;
    const std::string loader = text_at(config, "item_loader");
    made.tokens = loader == "TokensLoader";
    if (!made.tokens && !loader.empty() && loader != "PyTreeLoader")
      fail("the chunks were written for '" + loader.substr(0, 80) +
           "'; those of PyTreeLoader and TokensLoader are read");
    made.chunks.columns.push_back(columns(config));
    std::uint64_t content = 0;
    for (const mds_column& one : made.chunks.columns[0])
      content = hash_bytes(hash_bytes(content, bytes_of(one.name)), bytes_of(one.encoding));
    const std::string compression = text_at(config, "compression");
    made.rows = !text_at(config, "ipc_compression").empty();
    const std::string level = text_at(config, "compression_level");
    made.packed_samples = level == "sample";
    const bool inside = level == "batch" || made.packed_samples;
    for (const nlohmann::json& one : all["chunks"]) {
      mds_shard chunk;
      if (!one.is_object()) fail("an entry of 'chunks' is not an object");
      chunk.name = text_at(one, "filename");
      if (chunk.name.empty() || !stays_in_folder(chunk.name) || chunk.name.find("://") != std::string::npos)
        fail("the index names a chunk outside its folder, or none: '" + chunk.name.substr(0, 80) + "'");
      chunk.bytes = number(one, "chunk_bytes");
      chunk.samples = number(one, "chunk_size");
      chunk.compression = compression;
      chunk.content = content;
      // A compressed chunk is called chunk-0-0.zstd.bin where the plain one is chunk-0-0.bin.
      const std::string mark = "." + compression + ".";
      if (const std::size_t at = compression.empty() ? std::string::npos : chunk.name.rfind(mark);
          at != std::string::npos) {
        chunk.packed_name = chunk.name;
        chunk.name.erase(at, mark.size() - 1);
      } else if (inside) {
        chunk.packed_name = chunk.name;
      }
      made.chunks.shards.push_back(std::move(chunk));
    }
    return made;
  }

  /// Chunks do not describe themselves.
  [[nodiscard]] static bool agree(std::string_view config, const std::vector<mds_column>&) {
    return config.empty();
  }

 private:
  [[noreturn]] static void fail(const std::string& what) { throw error(errc::format, what); }

  /// Throws for chunks whose bytes are not as they are described here.
  static void check(const nlohmann::json& config) {
    const auto given = [&](const char* key) { return config.contains(key) && !config[key].is_null(); };
    if (given("encryption"))
      fail("the chunks are encrypted, which is not read: write them without encryption");
    const std::string level = text_at(config, "compression_level");
    if (!level.empty() && level != "chunk" && level != "batch" && level != "sample")
      fail("the chunks are compressed by '" + level.substr(0, 20) +
           "'; those of compression_level \"chunk\", \"batch\" and \"sample\" are read");
  }

  [[nodiscard]] static std::vector<mds_column> columns(const nlohmann::json& config) {
    if (!config.contains("data_format") || !config["data_format"].is_array() || config["data_format"].empty())
      fail("'config' has no list 'data_format'");
    const nlohmann::json& formats = config["data_format"];
    constexpr std::size_t maximum = 4096;
    if (formats.size() > maximum)
      throw error(errc::limit, {"samples of ", formats.size(), " leaves; the limit is ", maximum});
    std::vector<std::string> names;
    if (const std::string spec = text_at(config, "data_spec"); !spec.empty()) {
      const nlohmann::json tree = inner(spec, "data_spec");
      if (!tree.is_array() || tree.size() != 2) fail("'data_spec' is not the specification of a tree");
      name_leaves(tree[1], "", formats.size(), names);
    } else {
      for (std::size_t i = 0; i < formats.size(); ++i) names.push_back(std::to_string(i));
    }
    if (names.size() != formats.size())
      fail("'data_spec' has " + std::to_string(names.size()) + " leaves, and 'data_format' " +
           std::to_string(formats.size()));
    std::vector<mds_column> made;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!formats[i].is_string()) fail("an entry of 'data_format' is not a text");
      for (const mds_column& other : made)
        if (other.name == names[i])
          fail("two leaves are called '" + names[i].substr(0, 80) + "': write the samples with other keys");
      made.push_back({names[i], encoding_of(formats[i].get<std::string>()), 0});
    }
    return made;
  }

  /// JSON within the index's JSON, in which an offset would mislead.
  [[nodiscard]] static nlohmann::json inner(std::string_view text, const char* key) {
    try {
      return parse_description(text);
    } catch (const error& e) {
      throw error(e.code(), {"'", key, "': ", e.message()});
    }
  }

  /// The keys of a dict, an OrderedDict or a defaultdict: its context is JSON within JSON.
  [[nodiscard]] static nlohmann::json keys_of(const nlohmann::json& node) {
    if (const std::string type = text_at(node, "type"); !type.ends_with("dict") && !type.ends_with("Dict"))
      return {};
    if (!node.contains("context")) fail("'data_spec' has a dict without its keys");
    const nlohmann::json& context = node["context"];
    const nlohmann::json all =
        context.is_string() ? inner(context.get_ref<const std::string&>(), "context") : context;
    return all.is_object() && all.contains("dict_context") ? all["dict_context"] : all;
  }

  /// The names of the leaves of a tree, in its order: the keys and numbers on the way to each, with dots
  /// between.
  static void name_leaves(const nlohmann::json& node, const std::string& before, std::size_t leaves,
                          std::vector<std::string>& names) {
    constexpr std::size_t longest = 1024;
    if (before.size() > longest)
      throw error(errc::limit, {"'data_spec' has a leaf whose name is longer than ", longest, " bytes"});
    if (!node.is_object() || !node.contains("children_spec") || !node["children_spec"].is_array())
      fail("'data_spec' has a node without 'children_spec'");
    const nlohmann::json& children = node["children_spec"];
    if (!node.contains("type") || node["type"].is_null()) {
      if (names.size() == leaves) fail("'data_spec' has more leaves than 'data_format'");
      names.push_back(before.empty() ? "0" : before);
      return;
    }
    const nlohmann::json keys = keys_of(node);
    if (!keys.is_null() && (!keys.is_array() || keys.size() != children.size()))
      fail("'data_spec' has a dict without its keys");
    for (std::size_t i = 0; i < children.size(); ++i) {
      std::string name = before.empty() ? "" : before + ".";
      if (keys.is_null())
        name += std::to_string(i);
      else
        name += keys[i].is_string() ? keys[i].get<std::string>() : keys[i].dump();
      name_leaves(children[i], name, leaves, names);
    }
  }

  /// A leaf's format in the words of MDS where that has the same bytes.
  [[nodiscard]] static std::string encoding_of(const std::string& format) {
    const std::string kind = format.substr(0, format.find(':'));
    if (kind == "pickle" || format.ends_with(":pickle")) return "pkl";
    if (kind == "bool") return "uint8";
    if (kind == "float") return "float64";
    if (kind == "image") {
      const std::string ending = format.substr(std::min(format.size(), kind.size() + 1));
      if (ending == "jpg" || ending == "jpeg") return "jpeg";
      return ending == "png" ? "png" : "bytes";
    }
    for (const char* const same : {"int", "str", "bytes", "pil", "jpeg", "jpeg_array"})
      if (kind == same) return kind;
    for (const char* const array : {"numpy", "tensor", "no_header_numpy", "no_header_tensor"})
      if (kind == array) return format;
    return "bytes";  // files, LitData's packed lists (`json`), and what later versions bring
  }

  [[nodiscard]] static std::string text_at(const nlohmann::json& object, const char* key) {
    if (!object.contains(key) || object[key].is_null()) return {};
    if (!object[key].is_string()) fail(std::string("'") + key + "' is not a text");
    return object[key].get<std::string>();
  }
  [[nodiscard]] static std::uint64_t number(const nlohmann::json& object, const char* key) {
    if (!object.contains(key) || !object[key].is_number_unsigned())
      fail(std::string("a chunk has no '") + key + "' that is a number");
    return object[key].get<std::uint64_t>();
  }
};

}  // namespace detail

/// Reads the text of an `index.json` of LitData. Throws, as `read_litdata_index` does, without the file.
[[nodiscard]] inline litdata_index litdata_index_from_string(std::string_view text) {
  if (text.size() > detail::litdata_json::max_bytes)
    throw error(errc::limit, {"an index of ", text.size(), " bytes; the limit is 256 MiB"});
  return detail::litdata_json::index(text);
}

/// Reads the `index.json` of a LitData dataset.
///
///     const litdata_index known = read_litdata_index("optimized/index.json");
///     const std::uint64_t samples_of_the_first = known.chunks.shards.at(0).samples;
///
/// Throws, with the file: `errc::io`; `errc::format`, with the offset where it is known, for anything that is
/// not such an index, for encrypted chunks, for other loaders than PyTreeLoader and TokensLoader, names that
/// lead out of the index's folder, and two leaves of one name;
/// `errc::limit` for more than 256 MiB, or 4,096 leaves.
/// Source: litdata, streaming/writer.py and utilities/_pytree.py.
[[nodiscard]] inline litdata_index read_litdata_index(const std::string& path) {
  const buffer bytes = detail::read_whole_file(path, detail::litdata_json::max_bytes, "an index of chunks");
  try {
    return detail::litdata_json::index(text_of(bytes.view()));
  } catch (error& e) {
    e.in_file(path);
    throw;
  }
}

}  // namespace penstock::inline v0_1

// ---- penstock/source/mds_index.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// Reads the JSON of an MDS dataset: its index, and what a shard says of its columns.
class mds_json {
 public:
  static constexpr std::uint64_t max_bytes = 256_MiB;

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
    if (!object.contains(key) || !object[key].is_number_unsigned())
      fail(std::string("a shard has no '") + key + "' that is a number");
    return object[key].get<std::uint64_t>();
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
  if (text.size() > detail::mds_json::max_bytes)
    throw error(errc::limit, {"an index of ", text.size(), " bytes; the limit is 256 MiB"});
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
  const buffer bytes = detail::read_whole_file(path, detail::mds_json::max_bytes, "an index of shards");
  try {
    return detail::mds_json::index(text_of(bytes.view()));
  } catch (error& e) {
    e.in_file(path);
    throw;
  }
}
template <storage Storage>
[[nodiscard]] mds_index read_mds_index(const Storage& where) {
  if (where.names().size() != 1)
    throw error(errc::argument, {"an index is one object, and the storage has ", where.names().size()});
  auto session = where.connect();
  try {
    const std::uint64_t size = session.size(0);
    if (size > detail::mds_json::max_bytes)
      throw error(errc::limit, {"an index of ", size, " bytes; the limit is 256 MiB"});
    buffer room;
    room.resize_for_overwrite(detail::to_size(size));
    session.read(0, 0, room.span());
    return detail::mds_json::index(text_of(room.view()));
  } catch (error& e) {
    e.in_file(where.names()[0]);
    throw;
  }
}

}  // namespace penstock::inline v0_1

// ---- penstock/source/mds.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// MosaicML's shards.
struct mds_shards_kind {
  static constexpr mds_kind kind{"mds", &mds_json::agree, false, nullptr};
};

/// Shards of MDS's layout, for `record_files`.
template <class Kind>
struct mds_layout : mds_opening {
  static constexpr std::string_view source_name = Kind::kind.source_name;
  static constexpr bool lies_in_sequence = true;
  using files = mds_files;
  template <class Session>
  using opened = open_records<mds_files, Session>;

  explicit mds_layout(const mds_index& said) noexcept : mds_opening{said, Kind::kind} {}
};

}  // namespace detail

/// The source that `mds` makes of MosaicML's shards, and `litdata` of chunks, which are laid out alike.
template <storage Storage, class Kind = detail::mds_shards_kind>
using mds_source = record_files<detail::mds_layout<Kind>, Storage>;

namespace detail {

[[noreturn]] inline void no_mds_unpacker(const mds_shard& shard, const std::string& path) {
  throw error(errc::argument, {"the shard's compression is '", shard.compression,
                               "'; those of gzip, zstd, bzip2, brotli (br) and snappy are read: unpack the "
                               "dataset, or write it anew"})
      .in_file(path);
}

/// The compressions that leave no mark in a file, by their names in an index: "br", "br:11", "snappy".
enum class mds_packing { marked, brotli, snappy };
[[nodiscard]] inline mds_packing mds_packing_of(std::string_view compression) noexcept {
  compression = compression.substr(0, compression.find(':'));
  return compression == "br"       ? mds_packing::brotli
         : compression == "snappy" ? mds_packing::snappy
                                   : mds_packing::marked;
}

template <mds_packing Packing, unpacker... Unpack>
[[nodiscard]] std::string mds_copy(const std::string& packed, const unpacked_options& options) {
  static constexpr stream_kind unmarked{
      [](bytes_view) { return false; }, false,
      [](bytes_view) -> std::string_view { return Packing == mds_packing::brotli ? "brotli" : "snappy"; }};
  unpackers<Unpack...> unpack;
  return unpacked_path(packed, options, unpack.calls(), "mds",
                       Packing == mds_packing::marked ? tar_streams() : unmarked);
}
template <unpacker... Unpack>
[[nodiscard]] std::vector<std::string> mds_copies(const std::vector<std::string>& packed, mds_packing packing,
                                                  const unpacked_options& options) {
  return unpacked_paths(packed, options,
                        packing == mds_packing::brotli   ? &mds_copy<mds_packing::brotli, Unpack...>
                        : packing == mds_packing::snappy ? &mds_copy<mds_packing::snappy, Unpack...>
                                                         : &mds_copy<mds_packing::marked, Unpack...>);
}

/// The files of a dataset's shards: those that are not compressed where they are there, and of the others
/// what `copies_of(packed, packing)` returns for their paths: a copy, or the path itself of a file that is
/// not compressed.
template <class CopiesOf>
[[nodiscard]] std::vector<std::string> mds_paths(const std::string& path, const mds_index& index,
                                                 const CopiesOf& copies_of) {
  const std::string folder = files::local_path(path);
  std::vector<std::string> paths;
  struct packed_files {
    std::vector<std::string> paths;
    std::vector<std::size_t> places;
  };
  std::array<packed_files, 3> all;  // by packing
  for (std::size_t i = 0; i < index.shards.size(); ++i) {
    const mds_shard& one = index.shards[i];
    paths.push_back(folder + "/" + one.name);
    const bool other_file = one.packed_name != one.name;  // and not the same, compressed inside
    if (one.packed_name.empty() || (other_file && ::access(paths.back().c_str(), F_OK) == 0)) continue;
    packed_files& alike = all[static_cast<std::size_t>(mds_packing_of(one.compression))];
    alike.places.push_back(i);
    alike.paths.push_back(folder + "/" + one.packed_name);
  }
  for (std::size_t k = 0; k < all.size(); ++k) {
    const packed_files& alike = all[k];
    if (alike.paths.empty()) continue;
    const std::vector<std::string> copies = copies_of(alike.paths, static_cast<mds_packing>(k));
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const mds_shard& one = index.shards[alike.places[i]];
      if (copies[i] == alike.paths[i] && one.packed_name != one.name) no_mds_unpacker(one, alike.paths[i]);
      paths[alike.places[i]] = copies[i];
    }
  }
  return paths;
}

}  // namespace detail

/// Datasets of MosaicML Streaming: a folder with an `index.json` and MDS shards.
///
///     auto samples = mds("imagenet") | shuffle |
///                    decode<field<"image", identity>, field<"label", raw_number<std::int64_t>>>;
///     auto copies = mds<unpack_zstd>("compressed", {.folder = "cache"});  // or unpack_gzip, unpack_bzip2,
///                                                                          // unpack_brotli, unpack_snappy
///     auto others = mds(mapped_file("shard.{00000..00001}.mds"), read_mds_index("index.json"));
///
/// In: the folder's path; as template arguments the unpackers that may be needed, with the options of
/// `unpacked`; or any storage, whose objects are the shards that are not compressed, in the order of an
/// `mds_index`. A compressed shard is unpacked once, while the plan is made, to a copy; a shard that also is
/// there uncompressed is taken as it is.
/// Out: an open sample with a member for each column. `raw_number<T>` reads MosaicML's `int`, `uint8`,
/// `float32` and so on; `mds_array<T>` its arrays, `text` its `str`, `integer` and `floating` its `str_int`
/// and `str_float`, `jpeg` and `png` its images, `pil_pixels` its uncompressed ones, `mds_list` lists of
/// images, `json` and `json_field` its `json`. In `decode` a codec of this library that cannot read a
/// column's encoding is an error; codecs are told apart by their `codec_name`. Pickles are never executed,
/// and no codec gets them.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. `mosaic` gives its samples in
/// Streaming's order. Of shards that are not compressed, making the plan reads the index alone; a run reads a
/// shard's table of 4 bytes a sample when the shard is first used.
/// Cost per sample: in a mapped file (see `file`) nothing is copied; elsewhere a sample below 32 KiB is read
/// as a whole, and of a larger one the values that are asked for, straight into the batch. What is fetched
/// ahead is whole samples, since only a sample says where its values are. No allocation in the steady state.
/// Errors: errc::format, with shard and offset, for a shard that is not what its index says in size, samples
/// and columns; with the key too, for a sample whose columns do not fill it exactly; errc::limit for a
/// description of columns above 1 MiB; errc::argument for a storage whose objects are not called as the
/// index's shards are; errc::io. Of the checksums in the index only the fingerprint makes use: bytes are not
/// hashed.
/// Threads: any number may evaluate, each with its own worker.
/// Source: mosaicml-streaming, streaming/base/format/mds/{reader,writer,encodings}.py.
template <unpacker... Unpack>
[[nodiscard]] mds_source<file> mds(const std::string& folder, const unpacked_options& options = {}) {
  const mds_index index = read_mds_index(folder + "/index.json");
  const auto copies = [&](const std::vector<std::string>& packed, detail::mds_packing packing) {
    return detail::mds_copies<Unpack...>(packed, packing, options);
  };
  return {detail::mds_layout<detail::mds_shards_kind>(index), file(detail::mds_paths(folder, index, copies))};
}
template <storage Storage>
[[nodiscard]] mds_source<Storage> mds(Storage where, const mds_index& index) {
  return {detail::mds_layout<detail::mds_shards_kind>(index), std::move(where)};
}

/// Datasets of MosaicML Streaming for `dataset`, recognised by their `index.json`; with the unpackers that
/// compressed shards need.
template <unpacker... Unpack>
struct mds_format {
  static constexpr std::string_view name = "mds";
  using sources = std::variant<mds_source<file>>;

  unpacked_options copies = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return detail::index_has(there, "shards") ? format_fit::description : format_fit::none;
  }
  [[nodiscard]] sources open(const dataset_listing& there) const {
    return mds<Unpack...>(there.path(), copies);
  }
};

}  // namespace penstock::inline v0_1

// ---- penstock/source/litdata.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// LitData's chunks: MDS's layout without a description.
struct litdata_kind {
  static constexpr mds_kind kind{"litdata", &litdata_json::agree, true, [](bytes_view end) {
                                   return is_end_of_litdata_rows(end) ? litdata_of_rows : std::string_view();
                                 }};
};

/// Throws unless chunks have samples for `litdata`.
inline void check_litdata_samples(const litdata_index& index) {
  if (index.tokens)
    throw error(errc::argument, "these chunks are tokens: read them with litdata_tokens<T>(folder, window)");
  if (index.rows) throw error(errc::argument, std::string(litdata_of_rows));
}

/// A chunk, or a copy of it without compression. `Forms` unpack it.
template <unpacker... Forms>
[[nodiscard]] std::string litdata_path(const std::string& path, const unpacked_options& options,
                                       const stream_kind& kind) {
  unpackers<Forms...> unpack;
  return unpacked_path(path, options, unpack.calls(), "litdata", kind);
}
/// The files of the chunks, or copies of them without compression.
template <unpacker... Unpack>
[[nodiscard]] std::vector<std::string> litdata_paths(const std::string& folder, const litdata_index& index,
                                                     const unpacked_options& options) {
  return mds_paths(folder, index.chunks, [&](const std::vector<std::string>& packed, mds_packing) {
    if (index.packed_samples)
      return unpacked_paths(packed, options, [](const std::string& path, const unpacked_options& chosen) {
        return litdata_path<litdata_samples<Unpack>...>(path, chosen, litdata_sample_streams());
      });
    return unpacked_paths(packed, options, [](const std::string& path, const unpacked_options& chosen) {
      return litdata_path<litdata_frames<Unpack>...>(path, chosen, litdata_streams());
    });
  });
}

[[nodiscard]] inline std::uint64_t size_of_file(const std::string& path) {
  return file(std::vector{path}).connect().size(0);
}

/// Whether a chunk ends with rows of Arrow.
[[nodiscard]] inline bool has_litdata_rows(const std::string& path) {
  constexpr std::uint64_t mark = 8;
  const auto session = file(std::vector{path}).connect();
  const std::uint64_t size = session.size(0);
  if (size < mark) return false;
  const object_bytes end = session_view(session).range(0, size - mark, mark);
  return is_end_of_litdata_rows(end);
}

/// Whether `litdata_rows` reads a dataset: by what the index says, and the first chunk.
[[nodiscard]] inline bool has_litdata_rows(const std::string& folder, const litdata_index& index) {
  if (index.rows || index.tokens || index.chunks.shards.empty()) return index.rows;
  try {
    return has_litdata_rows(folder + "/" + index.chunks.shards.front().name);
  } catch (const error&) {  // one that is not there, or has another name because it is compressed
    return false;
  }
}

/// Throws errc::format unless files have as many rows as the index says of each.
inline void check_litdata_rows(const manifest& batches, const litdata_index& index,
                               const std::vector<std::string>& paths) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::uint64_t rows = 0;
    for (; at < batches.shards().size() && batches.shards()[at].name == paths[i]; ++at)
      rows += batches.shards()[at].samples;
    if (const std::uint64_t said = index.chunks.shards[i].samples; rows != said)
      throw error(errc::format, {"the chunk has ", rows, " rows, and the index says ", said})
          .in_file(paths[i]);
  }
}

/// Throws `errc::format` unless the tokens are of `T`, or of the other integer type of its size.
template <token_value T>
void check_litdata_tokens(const litdata_index& index) {
  const std::string_view format = index.chunks.columns[0][0].encoding;
  if (!index.tokens)
    throw error(errc::argument, "these chunks are samples, and not tokens: read them with litdata(folder)");
  const std::string_view stored = litdata_dtype(format);
  for (const std::string_view one :
       {mds_dtype<T>, mds_dtype<std::make_unsigned_t<T>>, mds_dtype<std::make_signed_t<T>>})
    if (stored == one) return;
  throw error(errc::format, {"the tokens are of ", stored.empty() ? format : stored, ", and ", mds_dtype<T>,
                             " was asked for: write litdata_tokens for their type"});
}

}  // namespace detail

/// The source that `litdata` makes of LitData's chunks.
template <storage Storage>
using litdata_source = mds_source<Storage, detail::litdata_kind>;

/// Datasets of LitData: a folder with an `index.json` and the chunks that `optimize` wrote.
///
///     auto samples = litdata("optimized") | shuffle |
///                    decode<field<"image", jpeg>, field<"label", raw_number<std::int64_t>>>;
///     auto copies = litdata<unpack_zstd>("compressed_chunks", {.folder = "cache"});
///
/// In: the folder's path, with the unpackers that may be needed as template arguments; or any storage, whose
/// objects are the chunks, not compressed, in the order of an index. A chunk that is compressed, as a whole
/// or inside, in batches or sample by sample, is unpacked once, while the plan is made, to a copy.
/// Out: an open sample with a member for each leaf, called by the keys and numbers on the way to it: "image",
/// "boxes.0". `raw_number<std::int64_t>` reads an `int`, `raw_number<double>` a `float`,
/// `raw_number<std::uint8_t>` a `bool`, `text` a `str`, `litdata_array<T>` arrays and tensors, `jpeg` and
/// `png` images, `pil_pixels` those of PIL, `mds_list` lists of JPEGs; files of other kinds, and lists and
/// dicts that LitData packs into one leaf (`json`), are their bytes. In `decode` a codec of this library that
/// cannot read a leaf's format is an error. Pickles are never executed, and no codec gets them.
/// Everything else is as for `mds`.
/// Errors: as for `mds`; those of `read_litdata_index`; errc::argument for chunks of tokens, see
/// `litdata_tokens`, and errc::argument or errc::format for rows of Arrow, see `litdata_rows`.
/// Source: litdata, streaming/{writer,item_loader,serializers}.py.
template <unpacker... Unpack>
[[nodiscard]] litdata_source<file> litdata(const std::string& folder, const unpacked_options& options = {}) {
  litdata_index index = read_litdata_index(folder + "/index.json");
  detail::check_litdata_samples(index);
  for (const mds_shard& one : index.chunks.shards) {
    if (one.packed_name != one.name) continue;  // it is not compressed inside
    const std::string path = folder + "/" + one.name;
    if (const std::uint64_t size = detail::size_of_file(path); size != one.bytes)
      throw error(errc::format, {"the chunk has ", size, " bytes, and its index says ", one.bytes})
          .in_file(path);
  }
  std::vector<std::string> paths = detail::litdata_paths<Unpack...>(folder, index, options);
  for (std::size_t i = 0; i < paths.size(); ++i)
    if (mds_shard& one = index.chunks.shards[i]; one.packed_name == one.name)
      one.bytes = detail::size_of_file(paths[i]);
  return {detail::mds_layout<detail::litdata_kind>(index.chunks), file(std::move(paths))};
}
template <storage Storage>
[[nodiscard]] litdata_source<Storage> litdata(Storage where, const litdata_index& index) {
  detail::check_litdata_samples(index);
  for (const mds_shard& one : index.chunks.shards)
    if (one.packed_name == one.name)
      throw error(
          errc::argument,
          {"the chunk '", one.name,
           "' may be compressed inside, and only litdata(folder) makes copies that are not; if it is not, "
           "clear its packed_name"});
  return {detail::mds_layout<detail::litdata_kind>(index.chunks), std::move(where)};
}

/// Datasets of LitData whose chunks are rows of Arrow: what `optimize` makes of dicts of numbers, texts,
/// bytes, lists and dicts where pyarrow is installed.
///
///     auto rows = litdata_rows("dicts") | shuffle |
///                 decode<field<"text", text>, field<"id", arrow_value<std::int64_t>>>;
///     auto packed = litdata_rows<unpack_zstd>("compressed_dicts");
///
/// In: the folder's path, with the unpackers that batches may need as template arguments. `arrow_ipc` reads
/// such chunks in any storage. Out, kind, cost and threads: as for `arrow_ipc`. LitData takes the types of
/// each chunk from its values: a column that is null in all rows of a chunk, or missing, is null there, and
/// columns may stand in another order.
/// Errors: as for `arrow_ipc`; also errc::format for a chunk that holds samples and no rows, for one that
/// does not have as many rows as the index says, and, if it is used, for a column that has whole numbers in
/// one chunk and others in the next, as a list of 1 and one of 0.5; errc::argument for chunks of tokens.
/// Source: litdata, streaming/{writer,item_loader}.py.
template <unpacker... Unpack>
[[nodiscard]] arrow_ipc_source<mapped_file> litdata_rows(const std::string& path,
                                                         const arrow_ipc_options& options = {}) {
  const std::string folder = detail::files::local_path(path);
  const litdata_index index = read_litdata_index(folder + "/index.json");
  if (index.tokens) detail::check_litdata_samples(index);
  std::vector<std::string> paths;
  for (const mds_shard& one : index.chunks.shards) {
    const bool whole = !one.packed_name.empty() && one.packed_name != one.name;  // LitData packs no rows so
    paths.push_back(folder + "/" + (whole ? one.packed_name : one.name));
    if (whole || !detail::has_litdata_rows(paths.back()))
      throw error(
          errc::format,
          "the chunk holds samples, and no rows of Arrow: read the dataset with litdata(folder); if other "
          "chunks of it hold rows, write it anew with one type in each column")
          .in_file(paths.back());
  }
  arrow_ipc_source<mapped_file> made(mapped_file(paths), options, &detail::unpack_arrow_buffer<Unpack...>);
  detail::check_litdata_rows(made.manifest(), index, paths);
  return made;
}

/// Windows of the tokens that LitData wrote for its `TokensLoader`.
///
///     auto text = litdata_tokens<std::int32_t>("tokens", token_windows{.length = 2049, .targets = 0}) | batch(32);
///
/// In: the folder's path; chunks that are compressed as a whole need their unpacker, as in
/// `litdata_tokens<T, unpack_zstd>`, and are unpacked once. Out: what `raw_tokens` gives. With
/// `.length = block_size` and `.targets = 0` the windows are LitData's blocks: they ignore where items end,
/// and what is left at the end of a chunk is in none. Kind, cost and threads are those of `raw_tokens`.
/// Throws `errc::format` for tokens of another type than `T`, or the other integer type of its size, and,
/// with file and offset, for a chunk whose table does not match its size; `errc::argument` for chunks of
/// samples, or if no chunk is as long as a window; `errc::io`.
/// Source: litdata, streaming/item_loader.py (TokensLoader).
template <token_value T, unpacker... Unpack, class Window>
[[nodiscard]] token_source<T, Window, mapped_file> litdata_tokens(const std::string& folder, Window window,
                                                                  const unpacked_options& options = {}) {
  const std::string path = folder + "/index.json";
  const litdata_index index = read_litdata_index(path);
  try {
    detail::check_litdata_tokens<T>(index);
  } catch (error& e) {
    e.in_file(path);
    throw;
  }
  return {mapped_file(detail::litdata_paths<Unpack...>(folder, index, options)), window,
          detail::token_format::litdata};
}

/// Datasets of LitData for `dataset`, recognised by their `index.json`; with the unpackers that compressed
/// chunks need.
template <unpacker... Unpack>
struct litdata_format {
  static constexpr std::string_view name = "litdata";
  using sources = std::variant<litdata_source<file>, arrow_ipc_source<mapped_file>>;

  unpacked_options copies = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return detail::index_has(there, "chunks") ? format_fit::description : format_fit::none;
  }
  [[nodiscard]] sources open(const dataset_listing& there) const {
    if (detail::has_litdata_rows(there.path(), read_litdata_index(there.path() + "/index.json")))
      return litdata_rows<Unpack...>(there.path());
    return litdata<Unpack...>(there.path(), copies);
  }
};

}  // namespace penstock::inline v0_1

// ---- penstock/source/mds_writer.hpp

namespace penstock::inline v0_1 {

/// Options of `mds_writer`.
struct mds_writer_options {
  /// The largest shard in bytes, below 4 GiB; a single larger sample gets a shard of its own.
  std::uint64_t size_limit = 64_MiB;
};

/// The value of a column, in bytes, for `mds_writer`.
struct mds_field {
  std::string_view column;
  bytes_view bytes;

  mds_field(std::string_view name, bytes_view value) noexcept : column(name), bytes(value) {}
  mds_field(std::string_view name, std::string_view text) noexcept : column(name), bytes(bytes_of(text)) {}
};

/// The bytes of a number in a column of `int`, `uint8`, `float32` and so on.
///
///     const auto seven = mds_number(std::int64_t{7});
template <class T>
  requires(!mds_dtype<T>.empty())
[[nodiscard]] std::array<std::byte, sizeof(T)> mds_number(T value) noexcept {
  auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  if constexpr (std::endian::native == std::endian::big) std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

/// The bytes of an array in a column of `ndarray`, `ndarray:DTYPE` or `ndarray:DTYPE:SHAPE`. Throws
/// `errc::argument` for an array that the encoding cannot hold, and for empty ones, which MosaicML refuses.
///
///     const std::vector<float> two{1, 2};
///     const std::vector<std::byte> bytes = mds_array_bytes<float>("ndarray:float32", extents(1, 2), two);
template <class T>
  requires(!mds_dtype<T>.empty())
[[nodiscard]] std::vector<std::byte> mds_array_bytes(std::string_view encoding, const extents& shape,
                                                     std::span<const T> values) {
  std::vector<std::byte> made = detail::mds_array_header(encoding, mds_dtype<T>, shape, values.size());
  for (const T& value : values) {
    const auto bytes = mds_number(value);
    made.insert(made.end(), bytes.begin(), bytes.end());
  }
  return made;
}

/// Writes a dataset that MosaicML Streaming and `mds` read: a folder of MDS shards and their `index.json`.
///
///     mds_writer out("written", {{"image", "jpeg"}, {"label", "int"}});
///     out.write({{"image", jpeg_bytes}, {"label", mds_number(std::int64_t{7})}});
///     out.close();
///
/// In: a folder, which is made if it is missing; the columns with their encodings, any of MosaicML's except
/// `pkl`; and the bytes of each value, which `mds_number` and `mds_array_bytes` make of numbers and arrays
/// and which are otherwise stored as they are. Out: the bytes that MosaicML's MDSWriter writes without
/// compression and hashes, except that no shard is empty. Each file appears under its name when it is
/// complete and flushed; the index comes last, at `close`: without it the folder is no dataset.
/// Cost: the samples of one shard are kept in memory.
/// Errors: errc::argument for an encoding that is not MosaicML's, for a folder that has an index already, a
/// column that is missing, unknown or given twice, and a value of the wrong size; errc::io with the path if a
/// file cannot be written; errc::state after `close`.
/// Threads: one at a time. Source: mosaicml-streaming, streaming/base/format/mds/writer.py.
class mds_writer {
 public:
  explicit mds_writer(std::string folder, std::vector<std::pair<std::string, std::string>> columns,
                      mds_writer_options options = {})
      : folder_(std::move(folder)), options_(options) {
    if (columns.empty()) throw error(errc::argument, "a dataset needs at least one column");
    if (options.size_limit >> 32 != 0)
      throw error(errc::argument, "a shard has less than 4 GiB; lower mds_writer_options::size_limit");
    std::sort(columns.begin(), columns.end());
    for (auto& [name, encoding] : columns) {
      if (!columns_.empty() && columns_.back().name == name)
        throw error(errc::argument, {"two columns are called '", name, "'"});
      const std::uint32_t size = detail::mds_value_size(encoding);
      columns_.push_back({std::move(name), std::move(encoding), size});
    }
    config_ = "{" + columns_text() +
              R"(, "compression": null, "format": "mds", "hashes": [], "size_limit": )" +
              std::to_string(options_.size_limit) + R"(, "version": 2})";
    if (::access(index_path().c_str(), F_OK) == 0)
      throw error(errc::argument, "the folder has an index already; write to another, or delete its files")
          .in_file(index_path());
    if (const int code = detail::make_folders(folder_); code != 0)
      throw error(errc::io, {"cannot make the folder: ", std::generic_category().message(code)})
          .in_file(folder_);
  }

  /// Appends a sample: each column once, in any order.
  void write(std::span<const mds_field> fields) {
    if (closed_) throw error(errc::state, "this mds_writer is closed");
    std::vector<const mds_field*> sorted(columns_.size());
    for (const mds_field& one : fields) *place_of(one, sorted) = &one;
    std::uint64_t size = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (sorted[i] == nullptr)
        throw error(errc::argument, {"the sample has no value for the column '", columns_[i].name, "'"});
      size += sorted[i]->bytes.size() + (columns_[i].size == 0 ? 4 : 0);
    }
    const std::uint64_t frame = 8 + config_.size();
    if ((frame + size + 4) >> 32 != 0)
      throw error(errc::argument, {"a sample of ", size, " bytes does not fit into a shard of 4 GiB"});
    if (!begins_.empty() && frame + samples_.size() + 4 * begins_.size() + size + 4 > options_.size_limit)
      finish_shard();
    begins_.push_back(samples_.size());
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].size == 0) put_number(samples_, sorted[i]->bytes.size());
    for (const mds_field* const one : sorted) samples_ += text_of(one->bytes);
  }
  void write(std::initializer_list<mds_field> fields) {
    write(std::span<const mds_field>(fields.begin(), fields.size()));
  }

  /// Writes what is left, and the index.
  void close() {
    if (closed_) throw error(errc::state, "this mds_writer is closed");
    if (!begins_.empty()) finish_shard();
    detail::output_file index(index_path());
    index.write(bytes_of(R"({"shards": [)" + entries_ + R"(], "version": 2})"));
    index.commit();
    closed_ = true;
  }

 private:
  [[nodiscard]] std::string index_path() const { return folder_ + "/index.json"; }

  /// Text as Python's json writes it.
  [[nodiscard]] static std::string quoted(const std::string& text) {
    try {
      return nlohmann::json(text).dump(-1, ' ', true);
    } catch (const nlohmann::json::exception&) {
      throw error(errc::argument, "the name of a column is not UTF-8");
    }
  }
  [[nodiscard]] std::string columns_text() const {
    std::string encodings, names, sizes;
    for (const mds_column& one : columns_) {
      const char* const comma = &one == columns_.data() ? "" : ", ";
      encodings += comma + quoted(one.encoding);
      names += comma + quoted(one.name);
      sizes += comma + (one.size == 0 ? "null" : std::to_string(one.size));
    }
    return R"("column_encodings": [)" + encodings + R"(], "column_names": [)" + names +
           R"(], "column_sizes": [)" + sizes + "]";
  }
  [[nodiscard]] const mds_field** place_of(const mds_field& one,
                                           std::vector<const mds_field*>& sorted) const {
    const auto found = std::ranges::lower_bound(columns_, one.column, {}, &mds_column::name);
    if (found == columns_.end() || found->name != one.column)
      throw error(errc::argument, {"there is no column '", one.column, "'"});
    const mds_field*& place = sorted[static_cast<std::size_t>(found - columns_.begin())];
    if (place != nullptr)
      throw error(errc::argument, {"the sample has two values for the column '", one.column, "'"});
    if (found->size != 0 && one.bytes.size() != found->size)
      throw error(errc::argument, {"a value of '", one.column, "' (", found->encoding, ") has ", found->size,
                                   " bytes, and ", one.bytes.size(), " were given"});
    return &place;
  }
  static void put_number(std::string& into, std::uint64_t number) {
    for (int i = 0; i < 4; ++i) into += static_cast<char>(number >> (8 * i) & 255);
  }

  void finish_shard() {
    const std::uint64_t first = 4 * (begins_.size() + 2) + config_.size();
    std::string head;
    put_number(head, begins_.size());
    for (const std::uint64_t begin : begins_) put_number(head, first + begin);
    put_number(head, first + samples_.size());
    head += config_;
    std::string number = std::to_string(shards_);
    number.insert(0, number.size() < 5 ? 5 - number.size() : 0, '0');
    const std::string name = "shard." + number + ".mds";
    detail::output_file file(folder_ + "/" + name);
    file.write(bytes_of(head));
    file.write(bytes_of(samples_));
    file.commit();
    entries_ += (shards_ == 0 ? "{" : ", {") + columns_text() +
                R"(, "compression": null, "format": "mds", "hashes": [], "raw_data": {"basename": )" +
                quoted(name) + R"(, "bytes": )" + std::to_string(head.size() + samples_.size()) +
                R"(, "hashes": {}}, "samples": )" + std::to_string(begins_.size()) + R"(, "size_limit": )" +
                std::to_string(options_.size_limit) + R"(, "version": 2, "zip_data": null})";
    ++shards_;
    begins_.clear();
    samples_.clear();
  }

  std::string folder_;
  mds_writer_options options_;
  std::vector<mds_column> columns_;  // by name
  std::string config_;
  std::vector<std::uint64_t> begins_;  // of the samples of the shard, from the first one
  std::string samples_;
  std::string entries_;  // of the index
  std::uint64_t shards_ = 0;
  bool closed_ = false;
};

}  // namespace penstock::inline v0_1

// ---- penstock/source/rows/safetensors_header.hpp

namespace penstock::inline v0_1 {

/// A tensor, as described in the header of a safetensors file.
struct safetensors_entry {
  std::string dtype;        ///< as written in the file: "F32"
  extents shape;            ///< no dimensions: a single number
  std::uint64_t begin = 0;  ///< offset of its bytes from the beginning of the file
  std::uint64_t bytes = 0;
};

namespace detail {

/// The number of bits in an element; 0 for a type that the format does not have.
[[nodiscard]] inline std::uint64_t safetensors_bits(std::string_view dtype) noexcept {
  struct row {
    std::string_view name;
    std::uint64_t bits;
  };
  constexpr std::array<row, 22> known{
      {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
       {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
       {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
       {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}}};
  for (const row& one : known) {
    if (one.name == dtype) return one.bits;
  }
  return 0;
}

/// The header of a safetensors file: tensors by name, and the texts of `__metadata__`.
struct safetensors_header {
  std::map<std::string, safetensors_entry, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> metadata;
  std::uint64_t data = 0;  ///< where the bytes of the tensors begin

  static constexpr std::uint64_t max_bytes = 100'000'000;  // set by the format
};

/// Handles the events of nlohmann's parser. The parser does not recurse, and this reader bounds the nesting.
/// Throws errc::format for anything that the format does not allow.
class safetensors_reader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  explicit safetensors_reader(safetensors_header& into) : into_(into) {}

  // some writers have no metadata to write
  bool null() { return (place_ == place::names && name_ == "__metadata__") || unexpected(); }
  bool boolean(bool) { return unexpected(); }
  bool number_integer(number_integer_t) { return unexpected(); }
  bool number_float(number_float_t, const string_t&) { return unexpected(); }
  bool binary(binary_t&) { return unexpected(); }
  bool number_unsigned(number_unsigned_t value) {
    if (place_ == place::shape) {
      if (!now_.shape.push_back(value)) fail("has more than eight dimensions");
    } else if (place_ == place::offsets && offsets_ < 2) {
      (offsets_++ == 0 ? now_.begin : end_) = value;
    } else {
      return unexpected();
    }
    return true;
  }
  bool string(string_t& value) {
    if (place_ == place::metadata) {
      into_.metadata[key_] = std::move(value);
    } else if (place_ == place::tensor && key_ == "dtype") {
      now_.dtype = std::move(value);
    } else {
      return unexpected();
    }
    return true;
  }
  bool start_object(std::size_t) {
    if (place_ == place::outside) {
      place_ = place::names;
    } else if (place_ == place::names && name_ == "__metadata__") {
      place_ = place::metadata;
    } else if (place_ == place::names) {
      place_ = place::tensor;
      now_ = {};
      seen_ = 0;
      end_ = 0;
      offsets_ = 0;
    } else {
      return unexpected();
    }
    return true;
  }
  bool key(string_t& value) {
    if (place_ == place::names) {
      name_ = std::move(value);
      if (into_.tensors.contains(name_) || (name_ == "__metadata__" && std::exchange(has_metadata_, true)))
        fail("appears twice");
      return true;
    }
    key_ = std::move(value);
    if (place_ == place::metadata) {
      if (into_.metadata.contains(key_)) fail("has the key '" + key_ + "' twice");
      return true;
    }
    const unsigned bit = key_ == "dtype" ? 1 : key_ == "shape" ? 2 : key_ == "data_offsets" ? 4 : 0;
    if (bit == 0) fail("has a '" + key_ + "', which the format does not know");
    if ((seen_ & bit) != 0) fail("has the key '" + key_ + "' twice");
    seen_ |= bit;
    return true;
  }
  bool start_array(std::size_t) {
    if (place_ == place::tensor && key_ == "shape") {
      place_ = place::shape;
    } else if (place_ == place::tensor && key_ == "data_offsets") {
      place_ = place::offsets;
    } else {
      return unexpected();
    }
    return true;
  }
  bool end_array() {
    place_ = place::tensor;
    return true;
  }
  bool end_object() {
    if (place_ == place::tensor) finish();
    place_ = place_ == place::names ? place::outside : place::names;
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) {
    throw error(errc::format, "the header of the safetensors file is not JSON")
        .at_offset(at == 0 ? 8 : at + 7);
  }

 private:
  enum class place { outside, names, metadata, tensor, shape, offsets };

  [[noreturn]] void fail(const std::string& what) const {
    throw error(errc::format, {"the tensor '", std::string_view(name_).substr(0, 80),
                               "' in the header of the safetensors file ", what})
        .at_offset(8);
  }
  bool unexpected() const {
    if (place_ == place::outside)
      throw error(errc::format, "the header of the safetensors file is not a JSON object").at_offset(8);
    if (place_ == place::metadata) fail("has a value that is not text");
    fail("is not described as {\"dtype\": text, \"shape\": [numbers], \"data_offsets\": [begin, end]}");
  }

  void finish() {
    if (seen_ != 7 || offsets_ != 2) unexpected();
    const std::uint64_t bits = safetensors_bits(now_.dtype);
    if (bits == 0) fail("is of dtype '" + now_.dtype.substr(0, 80) + "', which the format does not have");
    if (end_ < now_.begin) fail("ends before it begins");
    std::uint64_t size = bits;  // total size of the elements in bits
    for (const std::uint64_t length : now_.shape) {
      if (length != 0 && size > std::numeric_limits<std::uint64_t>::max() / length)
        fail("has more elements than can be counted");
      size *= length;
    }
    now_.bytes = end_ - now_.begin;
    if (size % 8 != 0 || size / 8 != now_.bytes)
      fail("has shape " + to_string(now_.shape) + " of " + now_.dtype + ", but " +
           std::to_string(now_.bytes) + " bytes, which does not match");
    into_.tensors.emplace(name_, std::move(now_));
  }

  safetensors_header& into_;
  place place_ = place::outside;
  std::string name_, key_;
  safetensors_entry now_;
  std::uint64_t end_ = 0;
  unsigned seen_ = 0;
  int offsets_ = 0;
  bool has_metadata_ = false;
};

/// The length of the header, from the first 8 bytes of a file of `size` bytes; more of them help to say what
/// another file is.
[[nodiscard]] inline std::uint64_t safetensors_header_bytes(bytes_view start, std::uint64_t size) {
  if (start.size() < 8)
    throw error(errc::format, {"the file ends within its first 8 bytes: it is not a safetensors file"})
        .at_offset(0);
  // the length of a header that could be is no beginning of another format
  const auto refuse = [&](errc code, std::initializer_list<piece> why) {
    if (!known_format(start).empty()) throw not_a("a safetensors file", start, {});
    throw error(code, why).at_offset(0);
  };
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) length |= std::to_integer<std::uint64_t>(start[i]) << (8 * i);
  if (length > safetensors_header::max_bytes)
    refuse(errc::limit, {"the safetensors header says it has ", length,
                         " bytes, and the format allows 100,000,000: is this a safetensors file?"});
  if (length > size - 8)
    refuse(errc::format, {"the safetensors header says it has ", length, " bytes, but ", size - 8,
                          " follow; copy the file again if it was cut"});
  return length;
}

/// Reads the header of a file of `size` bytes, without the 8 bytes before it. The tensors must fill the rest
/// of the file without gaps or overlaps.
[[nodiscard]] inline safetensors_header read_safetensors_header(bytes_view json, std::uint64_t size) {
  safetensors_header header;
  header.data = 8 + json.size();
  const std::string_view text = json.empty() ? std::string_view("") : text_of(json);
  if (!text.starts_with('{'))
    throw error(errc::format, "the safetensors header does not begin with '{': is this a safetensors file?")
        .at_offset(8);
  safetensors_reader reader(header);
  (void)nlohmann::json::sax_parse(text.begin(), text.end(), &reader);

  std::vector<std::pair<std::uint64_t, const std::string*>> order;
  for (const auto& [name, entry] : header.tensors) order.emplace_back(entry.begin, &name);
  // an empty tensor may begin at the same offset as another, and sorts before it
  const auto& tensors = header.tensors;
  std::sort(order.begin(), order.end(), [&tensors](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    return tensors.find(*a.second)->second.bytes < tensors.find(*b.second)->second.bytes;
  });
  std::uint64_t end = 0;
  for (const auto& [begin, name] : order) {
    if (begin != end)
      throw error(errc::format, {"the tensor '", std::string_view(*name).substr(0, 80), "' begins at ", begin,
                                 " of the safetensors data, and ", "the tensor before it ends at ", end, ": ",
                                 begin < end ? "they overlap" : "there is a gap"})
          .at_offset(8);
    end += header.tensors.find(*name)->second.bytes;
  }
  if (end != size - header.data)
    throw error(errc::format, {"the safetensors header describes ", end, " bytes, but ", size - header.data,
                               " follow it; copy the file again if it was cut"})
        .at_offset(header.data);
  for (auto& [name, entry] : header.tensors) entry.begin += header.data;
  return header;
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/safetensors.hpp

namespace penstock::inline v0_1 {

/// The safetensors name of a type; empty for a type it does not have. For a half-float type of your own:
/// `template <> inline constexpr std::string_view penstock::safetensors_dtype<my_bfloat> = "BF16";`
template <class T>
inline constexpr std::string_view safetensors_dtype = [] {
  using namespace std::string_view_literals;
  if constexpr (std::same_as<T, bool>)
    return "BOOL"sv;
  else if constexpr (std::same_as<T, half>)
    return "F16"sv;
  else if constexpr (std::same_as<T, bfloat16>)
    return "BF16"sv;
  else if constexpr (std::same_as<T, float>)
    return "F32"sv;
  else if constexpr (std::same_as<T, double>)
    return "F64"sv;
  else if constexpr (std::signed_integral<T>)
    return sizeof(T) == 1 ? "I8"sv : sizeof(T) == 2 ? "I16"sv : sizeof(T) == 4 ? "I32"sv : "I64"sv;
  else if constexpr (std::unsigned_integral<T>)
    return sizeof(T) == 1 ? "U8"sv : sizeof(T) == 2 ? "U16"sv : sizeof(T) == 4 ? "U32"sv : "U64"sv;
  else
    return ""sv;
}();

namespace detail {

template <class T>
concept safetensors_type = !safetensors_dtype<T>.empty() && std::is_trivially_copyable_v<T>;

/// The header of an object of a session.
[[nodiscard]] inline safetensors_header safetensors_header_of(session_view session, object_id object,
                                                              std::uint64_t size) {
  static_assert(std::endian::native == std::endian::little,
                "penstock: safetensors files are little-endian, and are shown in place: this needs a "
                "little-endian machine");
  const object_bytes start = session.range(object, 0, std::min<std::uint64_t>(size, 64));
  const std::uint64_t length = safetensors_header_bytes(start, size);
  const object_bytes header = session.range(object, 8, length);
  return read_safetensors_header(header, size);
}

[[noreturn]] inline void no_safetensors() {
  throw error(errc::missing, "the safetensors file has no tensors, only a header").at_offset(8);
}

/// The entry of a tensor; throws if it is missing or not of type `dtype` (empty: any type).
[[nodiscard]] inline const safetensors_entry& safetensors_tensor(const safetensors_header& header,
                                                                 std::string_view name,
                                                                 std::string_view dtype = {}) {
  const auto found = header.tensors.find(name);
  if (header.tensors.empty()) no_safetensors();
  if (found == header.tensors.end()) {
    std::string known;
    for (const auto& [other, entry] : header.tensors) list_name(known, other);
    throw error(errc::missing, {"the safetensors file has no tensor '", name, "'; it has: ", known})
        .at_offset(8);
  }
  if (!dtype.empty() && found->second.dtype != dtype)
    throw error(errc::format, {"the tensor '", name, "' of the safetensors file is of ", found->second.dtype,
                               ", but ", dtype, " was asked for; see safetensors_dtype"})
        .at_offset(found->second.begin);
  return found->second;
}

/// The rows of a tensor; throws if it is missing or not of type `dtype`.
[[nodiscard]] inline stored_rows find_safetensors_rows(session_view session, object_id object,
                                                       std::uint64_t size, std::string_view name,
                                                       std::string_view dtype) {
  const safetensors_header header = safetensors_header_of(session, object, size);
  const auto& entry = safetensors_tensor(header, name, dtype);
  if (entry.shape.rank() == 0)
    throw error(errc::format, {"the tensor '", name, "' is one number, which has no rows"})
        .at_offset(entry.begin);
  return {entry.shape, entry.begin, entry.begin, false};
}

template <class T>
struct safetensors_format {
  static_assert(safetensors_type<T>,
                "penstock: safetensors_rows<T> needs a bool, integer or floating type; for a half-float type "
                "of your own specialise penstock::safetensors_dtype");

  static constexpr std::string_view source_name = "safetensors_rows", holder = "this tensor";

  std::string name;

  [[nodiscard]] std::uint64_t mark() const { return hash_bytes(0x7361666574656e, bytes_of(name)); }
  [[nodiscard]] static constexpr std::string_view type_name() noexcept { return safetensors_dtype<T>; }
  [[nodiscard]] stored_rows find(session_view session, object_id object, std::uint64_t size) const {
    return find_safetensors_rows(session, object, size, name, safetensors_dtype<T>);
  }
};

}  // namespace detail

/// A safetensors file, mapped: its tensors by name.
///
///     const safetensors_file weights("model.safetensors");
///     const auto bias = weights.tensor<float>("layers.0.bias");     // a view of the mapping
///
/// In: the path of a file. Out: views, which are valid as long as this object or a copy of it lives; copies
/// share the mapping.
/// Cost: the constructor reads the header, at most 100 MB of JSON; `tensor` is a search by name. Throws, with
/// file and offset, `errc::format` for a header that does not describe the file exactly: lengths, offsets and
/// sizes that disagree, gaps, overlapping tensors, duplicate names, types or keys that the format does not
/// have, more than eight dimensions; `errc::limit` for a header of more than 100,000,000 bytes;
/// `errc::missing` for an unknown name; `errc::io`.
/// Threads: any number may call const members at once.
/// Source: safetensors, README.md ("Format") and safetensors/src/tensor.rs.
class safetensors_file {
 public:
  explicit safetensors_file(std::string path, mapped_file_options options = {})
      : path_(std::move(path)),
        session_(mapped_file(std::vector<std::string>{path_}, options).connect()),
        header_(read()) {}

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// All tensors, by name.
  [[nodiscard]] const std::map<std::string, safetensors_entry, std::less<>>& tensors() const noexcept {
    return header_.tensors;
  }
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& metadata() const noexcept {
    return header_.metadata;
  }

  /// The values of a tensor. Throws `errc::format` if it is of another type, or lies at an address that is
  /// not a multiple of `alignof(T)`; `bytes` works in either case.
  template <class T>
  [[nodiscard]] tensor_view<const T> tensor(std::string_view name) const {
    static_assert(
        detail::safetensors_type<T>,
        "penstock: tensor<T> needs a bool, integer or floating type; for a half-float type of your own "
        "specialise penstock::safetensors_dtype");
    return placed([&]() -> tensor_view<const T> {
      const safetensors_entry& entry = detail::safetensors_tensor(header_, name, safetensors_dtype<T>);
      const bytes_view found = session_.view(0, entry.begin, entry.bytes);
      if (reinterpret_cast<std::uintptr_t>(found.data()) % alignof(T) != 0)
        throw error(errc::format,
                    {"the tensor '", name, "' begins at an address that is not a multiple of ", alignof(T),
                     ": save the file again with a writer that aligns, or copy bytes()"})
            .at_offset(entry.begin);
      if constexpr (std::same_as<T, bool>) {
        // a bool with any other byte value is undefined behaviour
        const auto bad =
            std::find_if(found.begin(), found.end(), [](std::byte b) { return b > std::byte{1}; });
        if (bad != found.end())
          throw error(errc::format, {"the tensor '", name, "' has a BOOL that is neither 0 nor 1"})
              .at_offset(entry.begin + static_cast<std::uint64_t>(bad - found.begin()));
      }
      return {reinterpret_cast<const T*>(found.data()), entry.shape};
    });
  }
  /// The bytes of a tensor of any type.
  [[nodiscard]] bytes_view bytes(std::string_view name) const {
    return placed([&] {
      const safetensors_entry& entry = detail::safetensors_tensor(header_, name);
      return session_.view(0, entry.begin, entry.bytes);
    });
  }
  /// Throws if views may have shown bytes that are not the file's; see `mapped_file_options::guarded`.
  void confirm() const { session_.confirm(0); }

 private:
  detail::safetensors_header read() {
    return placed([this] {
      auto header = detail::safetensors_header_of(session_, 0, session_.size(0));
      session_.confirm(0);
      return header;
    });
  }
  template <class F>
  auto placed(F&& f) const -> decltype(f()) {
    try {
      return f();
    } catch (error& e) {
      session_.confirm(0);
      e.in_file(path_);
      throw;
    }
  }

  std::string path_;
  mapped_file::session session_;
  detail::safetensors_header header_;
};

/// The source that `safetensors_rows` makes of safetensors files.
template <class T, storage Storage, std::uint64_t... Lengths>
using safetensors_row_source = detail::row_source<detail::safetensors_format<T>, T, Storage, Lengths...>;

/// The rows of one tensor of safetensors files along its first dimension, all files as one dataset.
///
///     auto features = safetensors_rows<float>("features-{00..07}.safetensors", "clip") | shuffle | batch(256);
///     auto tokens = safetensors_rows<std::int32_t, 2048>("tokens.safetensors", "ids");
///
/// In: a pattern of names or a list of paths, which are `mapped_file`, or any storage; the tensor's name,
/// which is common to all files.
/// Out, kind, cost, threads: as for `npy_rows`.
/// Throws what `safetensors_file` throws; `errc::format` for a type other than `T` and for a tensor of no
/// dimensions; `errc::shape` if the shape of the rows is not the one asked for or differs from that of the
/// first file; `errc::io`, also for a file that was changed after the plan was made. For a file that shrinks
/// while it is mapped see `mapped_file_options`.
/// Source: safetensors, README.md ("Format").
template <class T, std::uint64_t... Lengths, storage Storage>
[[nodiscard]] safetensors_row_source<T, Storage, Lengths...> safetensors_rows(Storage where,
                                                                              std::string_view tensor) {
  return safetensors_row_source<T, Storage, Lengths...>(std::move(where), {std::string(tensor)});
}
template <class T, std::uint64_t... Lengths>
[[nodiscard]] safetensors_row_source<T, mapped_file, Lengths...> safetensors_rows(detail::mapped_paths paths,
                                                                                  std::string_view tensor) {
  return safetensors_row_source<T, mapped_file, Lengths...>(std::move(paths).files(), {std::string(tensor)});
}

namespace detail {

template <class T, class Storage>
using safetensors_source_of = safetensors_row_source<T, Storage>;

/// Whether some files begin as safetensors do: with the length of a header that is JSON.
[[nodiscard]] inline bool is_safetensors(const listed_files& some) {
  if (some.head.size() < 10) return false;
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(some.head[i]);
  return length >= 2 && length <= some.size - 8 && some.head[8] == '{' &&
         (some.head[9] == '"' || some.head[9] == '}' || some.head[9] == ' ');
}

/// The tensor that is meant by this name: if it is empty, the only one.
[[nodiscard]] inline std::string chosen_tensor(const safetensors_header& header, const std::string& tensor) {
  if (!tensor.empty()) return tensor;
  if (header.tensors.empty()) no_safetensors();
  if (header.tensors.size() == 1) return header.tensors.begin()->first;
  std::string known;
  for (const auto& [name, entry] : header.tensors) list_name(known, name);
  throw error(errc::argument,
              {"the safetensors file has several tensors, ", known,
               ": name one, as in dataset(path, safetensors_rows_format<>{.tensor = ...}), or "
               "join several with zip<...>(safetensors_rows<...>(...), ...)"});
}

}  // namespace detail

/// Safetensors files for `dataset`, of several tensors the one that is named, of one of these types; without
/// any, `std::uint8_t`, `std::int16_t`, `std::int32_t`, `std::int64_t`, `float` or `double`.
template <class... Ts>
struct safetensors_rows_format {
  using types = typename detail::number_types<detail::common_numbers, Ts...>::type;
  template <storage Storage>
  using stored_sources =
      typename detail::sources_of_types<types, detail::safetensors_source_of, Storage>::type;
  using sources = stored_sources<mapped_file>;
  static constexpr std::string_view name = "safetensors_rows";

  std::string tensor = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return there.fit_of(&detail::is_safetensors);
  }
  [[nodiscard]] sources open(const dataset_listing& there) const {
    return open_in(mapped_file(there.paths_of(&detail::is_safetensors)), there);
  }
  template <storage Storage>
  [[nodiscard]] stored_sources<Storage> open_in(Storage where, const dataset_listing& there) const {
    auto session = where.connect();
    std::string chosen, dtype;
    try {
      const auto header = detail::safetensors_header_of(session, 0, session.size(0));
      chosen = detail::chosen_tensor(header, tensor);
      dtype = detail::safetensors_tensor(header, chosen).dtype;
    } catch (error& e) {
      e.in_file(where.names()[0]);
      throw;
    }
    return detail::source_of_type<stored_sources<Storage>>(
        std::type_identity<types>{}, {&there, name, dtype},
        [&]<class T>() { return safetensors_dtype<T> == dtype; },
        [&]<class T>() { return safetensors_rows<T>(std::move(where), chosen); });
  }
};

}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/read_avro_schema.hpp

namespace penstock::inline v0_1 {
namespace detail {

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
    constexpr std::array<std::pair<std::string_view, avro_kind>, 8> known{{{"null", avro_kind::null},
                                                                           {"boolean", avro_kind::boolean},
                                                                           {"int", avro_kind::int32},
                                                                           {"long", avro_kind::int64},
                                                                           {"float", avro_kind::float32},
                                                                           {"double", avro_kind::float64},
                                                                           {"bytes", avro_kind::bytes},
                                                                           {"string", avro_kind::string}}};
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

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/avro_file.hpp

namespace penstock::inline v0_1 {
namespace detail {

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

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/delta_table.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// JSON of a log; of `value_t::discarded` if it is none, or so deeply nested that it is no log's.
[[nodiscard]] inline nlohmann::json delta_json(std::string_view text) {
  constexpr int maximum = 200;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size() && depth <= maximum; ++i) {
    if (quoted && text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted && (text[i] == '{' || text[i] == '['))
      ++depth;
    else if (!quoted && (text[i] == '}' || text[i] == ']'))
      --depth;
  }
  if (depth > maximum) return nlohmann::json::value_t::discarded;
  return nlohmann::json::parse(text, nullptr, false);
}

/// Calls `work(action)` for the lines of a file of the log, in their order, until it returns false; returns
/// whether it never did. Errors, its own too, name the file.
template <class Work>
bool delta_lines(const std::string& path, std::string_view all, Work&& work) {
  for (std::uint64_t number = 1; !all.empty(); ++number) {
    const std::string_view line = all.substr(0, all.find('\n'));
    all.remove_prefix(std::min(line.size() + 1, all.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const nlohmann::json action = delta_json(line);
    if (!action.is_object())
      throw error(errc::format, {"line ", number, " of the log is no object of JSON that can be read"})
          .in_file(path);
    try {
      if (!work(action)) return false;
    } catch (const nlohmann::json::exception& e) {
      throw error(errc::format, {"line ", number, " of the log is not as Delta writes it: ", e.what()})
          .in_file(path);
    } catch (error& e) {
      e.in_file(path);
      throw;
    }
  }
  return true;
}

/// The name of an action's file, whose path Delta writes with some characters as `%20`: in the table's
/// folder, or a name of its own in the same file system.
[[nodiscard]] inline std::string delta_path(const std::string& folder, std::string_view written) {
  const std::string name = name_of_uri(written);
  const std::string_view scheme = scheme_of_uri(name);
  if (!scheme.empty() && scheme != scheme_of_uri(folder))
    throw error(errc::argument,
                {"the table has the file '", written,
                 "' of another file system; read it with parquet and a storage of that system"})
        .in_file(folder);
  if (is_web_name(name)) return name;  // as the storage has it
  std::string path = hive_text(name);
  return !scheme.empty() || path.starts_with('/') ? path : name_in_folder(folder, path);
}

/// Days since 1970 of "2024-03-31"; none for other texts.
[[nodiscard]] inline std::optional<std::int64_t> delta_day(std::string_view text) {
  int year = 0;
  unsigned month = 0, day = 0;
  const char *at = text.data(), *const end = at + text.size();
  const auto part = [&](auto& into, char behind) {
    const auto [next, failed] = std::from_chars(at, end, into);
    at = next;
    if (failed != std::errc{}) return false;
    if (behind == '\0') return at == end;
    return at != end && *at++ == behind;
  };
  if (!part(year, '-') || !part(month, '-') || !part(day, '\0')) return std::nullopt;
  if (year < static_cast<int>(std::chrono::year::min()) || year > static_cast<int>(std::chrono::year::max()))
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

/// Microseconds since 1970 of "2024-03-31 10:00:00.123456", perhaps with a T and a Z; none for other texts.
[[nodiscard]] inline std::optional<std::int64_t> delta_time(std::string_view text) {
  if (text.ends_with('Z')) text.remove_suffix(1);
  constexpr std::size_t date = 10, whole = 19;
  if (text.size() < whole || (text[date] != ' ' && text[date] != 'T')) return std::nullopt;
  const auto day = delta_day(text.substr(0, date));
  std::array<int, 3> parts{};
  for (std::size_t i = 0; i < 3; ++i) {
    const char* const at = text.data() + date + 1 + 3 * i;
    const bool digits = at[0] >= '0' && at[0] <= '9';  // and not a sign
    if (!digits || std::from_chars(at, at + 2, parts[i]).ptr != at + 2 || parts[i] > (i == 0 ? 23 : 59) ||
        (i != 2 && at[2] != ':'))
      return std::nullopt;
  }
  std::int64_t micros = 0;
  if (text.size() > whole) {
    std::string digits(text.substr(whole + 1));
    if (text[whole] != '.' || digits.empty() || digits.size() > 9) return std::nullopt;
    digits.resize(6, '0');
    const char* const end = digits.data() + digits.size();
    if (std::from_chars(digits.data(), end, micros).ptr != end) return std::nullopt;
  }
  if (!day) return std::nullopt;
  return ((*day * 24 + parts[0]) * 3600 + parts[1] * 60 + parts[2]) * 1'000'000 + micros;
}

/// The type of a column, as a schema has it.
[[nodiscard]] inline arrow_type delta_type(const nlohmann::json& said, std::string name, bool physical) {
  const auto named = [&](arrow_type made) {
    made.name = std::move(name);
    return made;
  };
  if (said.is_object()) {
    const auto kind = said.at("type").get<std::string>();
    if (kind == "struct") {
      arrow_type made = arrow_type::of_format("+s");
      for (const nlohmann::json& field : said.at("fields")) {
        auto called = field.at("name").get<std::string>();
        if (physical && field.contains("metadata") &&
            field["metadata"].contains("delta.columnMapping.physicalName"))
          called = field["metadata"]["delta.columnMapping.physicalName"].get<std::string>();
        made.children.push_back(delta_type(field.at("type"), std::move(called), physical));
      }
      return named(std::move(made));
    }
    arrow_type made = arrow_type::of_format(kind == "map" ? "+m" : "+l");
    if (kind == "array") made.children.push_back(delta_type(said.at("elementType"), "element", physical));
    if (kind == "map") {
      arrow_type entry = arrow_type::of_format("+s");
      entry.children = {delta_type(said.at("keyType"), "key", physical),
                        delta_type(said.at("valueType"), "value", physical)};
      made.children.push_back(std::move(entry));
    }
    return named(std::move(made));
  }
  const auto kind = said.get<std::string>();
  constexpr std::array<std::pair<std::string_view, std::string_view>, 14> known{{{"string", "u"},
                                                                                 {"long", "l"},
                                                                                 {"integer", "i"},
                                                                                 {"short", "s"},
                                                                                 {"byte", "c"},
                                                                                 {"float", "f"},
                                                                                 {"double", "g"},
                                                                                 {"boolean", "b"},
                                                                                 {"binary", "z"},
                                                                                 {"date", "tdD"},
                                                                                 {"timestamp", "tsu:UTC"},
                                                                                 {"timestamp_ntz", "tsu:"},
                                                                                 {"void", "n"},
                                                                                 {"null", "n"}}};
  for (const auto& [delta, arrow] : known)
    if (kind == delta) return named(arrow_type::of_format(arrow));
  if (kind.starts_with("decimal(") && kind.ends_with(')'))
    return named(arrow_type::of_format("d:" + kind.substr(8, kind.size() - 9)));
  throw error(errc::format, {"the column '", name, "' has the type '", kind, "', which is none of Delta's"});
}

/// Whether a type, as a schema has it, is or has another one: "variant".
[[nodiscard]] inline bool delta_has_type(const nlohmann::json& said, std::string_view wanted) {
  if (said.is_string()) return said.get<std::string>() == wanted;
  if (!said.is_object()) return false;
  for (const char* const part : {"type", "elementType", "keyType", "valueType"})
    if (said.contains(part) && delta_has_type(said[part], wanted)) return true;
  const nlohmann::json fields = said.value("fields", nlohmann::json::array());
  return std::any_of(fields.begin(), fields.end(),
                     [&](const nlohmann::json& one) { return delta_has_type(one, wanted); });
}

/// The bytes of a partition's value of binary, which delta-rs writes as "\\u0001\\u00ff", with these
/// characters, and others as they are.
[[nodiscard]] inline std::string delta_bytes(const std::string& said) {
  constexpr std::size_t length = 6;
  std::string made;
  for (std::size_t at = 0; at < said.size(); at += length) {
    unsigned value = 0;
    const std::string_view one = std::string_view(said).substr(at, length);
    if (one.size() != length || !one.starts_with("\\u00") ||
        std::from_chars(one.data() + 4, one.data() + length, value, 16).ptr != one.data() + length)
      return said;
    made += static_cast<char>(value);
  }
  return made;
}

/// What the actions of a log have made of a table.
struct delta_state {
  struct file {
    std::string path;  // as it is written
    nlohmann::json values, deleted;
  };

  std::uint64_t version = 0;
  nlohmann::json metadata, protocol;
  std::map<std::string, file> files;  // by path and deletion vector
  std::vector<std::string> sidecars;

  [[nodiscard]] static bool knows(std::string_view action) noexcept {
    return action == "add" || action == "remove" || action == "metaData" || action == "protocol" ||
           action == "sidecar";
  }

  void apply(const nlohmann::json& action) {
    if (action.contains("metaData")) metadata = action["metaData"];
    if (action.contains("protocol")) protocol = action["protocol"];
    if (action.contains("sidecar")) sidecars.push_back(action["sidecar"].at("path").get<std::string>());
    if (action.contains("remove")) files.erase(key_of(action["remove"]));
    if (action.contains("add")) {
      const nlohmann::json& add = action["add"];
      files[key_of(add)] = {add.at("path").get<std::string>(), add.value("partitionValues", nlohmann::json()),
                            add.value("deletionVector", nlohmann::json())};
    }
  }

  /// Checks that the table can be read, and takes its schema. Throws errc::argument for features of Delta
  /// that are not known.
  void finish(const std::string& folder) {
    try {
      if (!protocol.is_object() || !metadata.is_object())
        throw error(errc::format, "the log does not say what its protocol and its schema are");
      const int reader = number_at<int>(protocol, "minReaderVersion");
      if (reader > 3)
        throw error(errc::argument,
                    {"the table asks for readers of version ", reader, "; version 3 is known"});
      schema_ = delta_json(metadata.at("schemaString").get<std::string>());
      if (!schema_.is_object())
        throw error(errc::format, "the schema in the log is no object of JSON that can be read");
      bool mapping = reader == 2;
      for (const nlohmann::json& one : protocol.value("readerFeatures", nlohmann::json::array())) {
        constexpr std::array known{"columnMapping",       "deletionVectors",     "timestampNtz",
                                   "v2Checkpoint",        "vacuumProtocolCheck", "typeWidening",
                                   "typeWidening-preview"};
        const auto name = one.get<std::string>();
        mapping = mapping || name == "columnMapping";
        // Writers name the feature before any column needs it.
        if (name.starts_with("variant") && !delta_has_type(schema_, "variant")) continue;
        if (std::ranges::find(known, std::string_view(name),
                              [](const char* k) { return std::string_view(k); }) == known.end())
          throw error(errc::argument,
                      {"the table has the feature '", name, "' of Delta, which is not known here"});
      }
      const nlohmann::json settings = metadata.value("configuration", nlohmann::json::object());
      const std::string mode =
          settings.is_object() ? settings.value("delta.columnMapping.mode", "none") : "none";
      mapped_ = mode != "none" && mapping;
      by_id_ = mode == "id" && mapping;
      parts_.clear();
      for (const nlohmann::json& one : metadata.value("partitionColumns", nlohmann::json::array()))
        parts_.push_back(one.get<std::string>());
    } catch (const nlohmann::json::exception& e) {
      throw error(errc::format, {"the log is not as Delta writes it: ", e.what()}).in_file(folder);
    } catch (error& e) {
      e.in_file(folder);
      throw;
    }
  }

  /// The files in the order of their paths.
  [[nodiscard]] std::vector<std::string> paths(const std::string& folder) const {
    std::vector<std::string> made;
    for (const auto& [key, one] : files) made.push_back(delta_path(folder, one.path));
    return made;
  }

  /// Reads deletion vectors.
  [[nodiscard]] table_facts facts(const std::string& folder, const table_objects& objects) const {
    try {
      table_facts made = facts_of(folder);
      made.deleted = deleted(folder, objects);
      return made;
    } catch (const nlohmann::json::exception& e) {
      throw error(errc::format, {"the log is not as Delta writes it: ", e.what()}).in_file(folder);
    } catch (error& e) {
      e.in_file(folder);
      throw;
    }
  }

 private:
  [[nodiscard]] static std::string key_of(const nlohmann::json& action) {
    auto key = action.at("path").get<std::string>();
    if (action.contains("deletionVector") && action["deletionVector"].is_object()) {
      const nlohmann::json& deleted = action["deletionVector"];
      append(key, {std::string_view("\0", 1), deleted.at("storageType").get<std::string>(),
                   deleted.at("pathOrInlineDv").get<std::string>()});
      if (deleted.contains("offset") && deleted["offset"].is_number_integer())
        append(key, {"@", number_at<std::int64_t>(deleted, "offset")});
    }
    return key;
  }

  [[nodiscard]] table_facts facts_of(const std::string& folder) const {
    table_facts made;
    made.schema = arrow_type::of_format("+s");
    std::vector<std::string> keys(parts_.size());  // what partition columns are called in actions
    made.part_types.resize(parts_.size());
    for (const nlohmann::json& field : schema_.at("fields")) {
      const auto name = field.at("name").get<std::string>();
      std::string stored;
      if (mapped_ && field.contains("metadata"))
        stored = field["metadata"].value("delta.columnMapping.physicalName", std::string());
      arrow_type type = delta_type(field.at("type"), name, false);
      const auto part = static_cast<std::size_t>(std::ranges::find(parts_, name) - parts_.begin());
      if (part == parts_.size()) {
        made.schema.children.push_back(std::move(type));
        made.stored_as.emplace_back();
        if (!stored.empty()) made.stored_as.back().push_back(std::move(stored));
        if (mapped_) made.stored_types.push_back(delta_type(field.at("type"), name, true));
        if (by_id_) made.field_ids.push_back(number_at<int>(field.at("metadata"), "delta.columnMapping.id"));
        continue;
      }
      keys[part] = stored.empty() ? name : stored;
      made.part_types[part] = std::move(type);
    }
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (made.part_types[i].name.empty())
        throw error(errc::format,
                    {"the table has partitions by the column '", parts_[i], "', which is not in its schema"});
    std::uint64_t mark = hash_bytes(version, bytes_of(metadata.value("id", std::string())));
    for (const auto& [key, one] : files) {
      mark = hash_bytes(mark, bytes_of(key));
      made.part_values.emplace_back();
      for (std::size_t i = 0; i < keys.size(); ++i) {
        std::optional<std::string> value;
        if (one.values.is_object() && one.values.contains(keys[i]) && one.values[keys[i]].is_string())
          value = one.values[keys[i]].get<std::string>();
        if (value && value->empty()) value.reset();  // as Delta has it
        if (value && made.part_types[i].format.starts_with('t')) {
          auto number = made.part_types[i].format == "tdD" ? delta_day(*value) : delta_time(*value);
          if (const auto day = delta_day(*value); !number && day)  // of a column that was a date before
            number = *day * std::int64_t{86'400'000'000};
          if (number) value = std::to_string(*number);
        }
        if (value && made.part_types[i].format == "z") value = delta_bytes(*value);
        made.part_values.back().push_back(std::move(value));
      }
    }
    made.says = text({"delta('", folder, "', version ", version, ")"});
    made.mark = mix64(mark);
    return made;
  }

  // Where the deletion vector of a file is.
  struct vector_place {
    std::string path;             // empty: there is none, or it is here
    std::vector<std::byte> here;  // one that the log has
    std::uint64_t offset = 0, size = 0, count = 0;
    object_id object = 0;
  };

  [[nodiscard]] static vector_place place_of(const std::string& folder, const nlohmann::json& said) {
    const auto kind = said.at("storageType").get<std::string>(),
               where = said.at("pathOrInlineDv").get<std::string>();
    vector_place made;
    made.size = number_at<std::uint64_t>(said, "sizeInBytes");
    made.count = number_at<std::uint64_t>(said, "cardinality");
    if (kind == "i") {
      made.here = from_z85(where);
      if (made.here.size() < made.size)
        throw error(errc::format, "an inline deletion vector is shorter than it says");
      made.here.resize(to_size(made.size));
    } else if (kind == "u" || kind == "p") {
      made.path =
          kind == "u" ? name_in_folder(folder, deletion_vector_name(where)) : delta_path(folder, where);
      if (said.contains("offset") && said["offset"].is_number_integer())
        made.offset = number_at<std::uint64_t>(said, "offset");
    } else {
      throw error(errc::format, {"a deletion vector is kept in the way '", kind, "', which is not known"});
    }
    return made;
  }
  [[nodiscard]] static std::vector<std::uint64_t> rows_of(const vector_place& one, bytes_view bytes) {
    constexpr std::uint64_t maximum = std::uint64_t{1} << 27;  // which are a gigabyte here
    std::vector<std::uint64_t> rows = read_deletion_vector(bytes, std::min(maximum, one.count));
    if (rows.size() != one.count)
      throw error(errc::format,
                  {"a deletion vector has ", rows.size(), " rows, and the log says ", one.count});
    return rows;
  }
  // By file: the rows that are deleted.
  [[nodiscard]] std::vector<std::vector<std::uint64_t>> deleted(const std::string& folder,
                                                                const table_objects& objects) const {
    std::vector<std::vector<std::uint64_t>> made(files.size());
    std::vector<std::pair<std::size_t, vector_place>> in_files;
    std::vector<std::string> names;
    std::map<std::string, object_id> known;
    std::size_t next = 0;
    for (const auto& [key, one] : files) {
      const std::size_t number = next++;
      if (!one.deleted.is_object()) continue;
      vector_place found = place_of(folder, one.deleted);
      if (found.path.empty()) {
        made[number] = rows_of(found, found.here);
        continue;
      }
      const auto [place, is_new] = known.try_emplace(found.path, static_cast<object_id>(names.size()));
      if (is_new) names.push_back(found.path);
      found.object = place->second;
      in_files.emplace_back(number, std::move(found));
    }
    if (in_files.empty()) return made;
    objects.open(names, [&](session_view session) {
      const std::size_t threads = std::min(in_files.size(), table_objects::max_in_flight);
      for_each_in_parallel(in_files.size(), threads, [&](std::size_t i) {
        const auto& [number, one] = in_files[i];
        try {
          made[number] =
              rows_of(one, deletion_vector_in_file(session, one.object, "\1", one.offset, one.size));
        } catch (error& e) {
          e.in_file(one.path);
          throw;
        }
      });
    });
    return made;
  }

  nlohmann::json schema_;
  bool mapped_ = false, by_id_ = false;
  std::vector<std::string> parts_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/wids.hpp

namespace penstock::inline v0_1 {

namespace detail {

/// What a wids description says about a shard.
struct wids_shard {
  std::string path;
  std::uint64_t samples = 0;
  std::optional<std::uint64_t> bytes;
};

/// The shards of a description and of the descriptions it names, and how many bytes were read to find them.
/// Both are bounded in total, because a few bytes may repeat a long base, or name one description many times.
struct wids_listing {
  static constexpr std::size_t max_bytes = 64_MiB;

  std::vector<wids_shard> shards;
  std::uint64_t path_bytes = 0, read_bytes = 0;
};

/// Reads a description and the descriptions it names: one level deep, as wids does.
class wids_reader {
 public:
  explicit wids_reader(std::string path) : path_(std::move(path)) {}

  void read(wids_listing& found, bool top = true) {
    const nlohmann::json all = parsed(found);
    if (!all.is_object()) fail("the description is not a JSON object");
    if (all.contains("__kind__") && all["__kind__"] != "wids-shard-index-v1")
      fail("'__kind__' is not \"wids-shard-index-v1\"");
    if (!all.contains("wids_version") || all["wids_version"] != 1)
      fail("'wids_version' is missing or not 1, the only known version");
    if (!all.contains("shardlist") && !all.contains("datasets"))
      fail("the description has neither 'shardlist' nor 'datasets'");
    if (all.contains("shardlist")) list(all, folder_of(path_), found);
    if (!all.contains("datasets")) return;
    if (!top)
      fail("a description that another one names may not name a third; list all shards in one description");
    if (!all["datasets"].is_array()) fail("'datasets' is not a list");
    for (const nlohmann::json& one : all["datasets"]) {
      if (one.is_object() && one.contains("shardlist"))
        list(one, folder_of(path_), found);
      else
        wids_reader(joined(folder_of(path_), text(one, "source_url"))).read(found, false);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw error(errc::format, what).in_file(path_); }

  [[nodiscard]] nlohmann::json parsed(wids_listing& found) const {
    const buffer bytes = read_whole_file(path_, wids_listing::max_bytes, "a description of shards");
    found.read_bytes += bytes.size();
    if (found.read_bytes > wids_listing::max_bytes)
      throw error(errc::limit, "this description and those before it exceed 64 MiB in total").in_file(path_);
    try {
      return parse_description(text_of(bytes.view()));
    } catch (error& e) {
      e.in_file(path_);
      throw;
    }
  }
  [[nodiscard]] static std::string folder_of(const std::string& path) {
    return path.substr(0, path.rfind('/') + 1);
  }
  /// Relative paths are relative to `base`; URLs of other machines are refused.
  [[nodiscard]] std::string joined(const std::string& base, std::string url) const {
    if (url.starts_with("file:")) url.erase(0, url.starts_with("file://") ? 7 : 5);
    if (url.find("://") != std::string::npos || url.starts_with("pipe:"))
      fail("'" + url.substr(0, 80) + "' is not a local file; copy the shards to this machine");
    return url.starts_with('/') ? url : base + url;
  }
  [[nodiscard]] std::string text(const nlohmann::json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key) || !object[key].is_string())
      fail(std::string("an entry has no text '") + key + "'");
    return object[key].get<std::string>();
  }
  [[nodiscard]] std::uint64_t number(const nlohmann::json& object, const char* key) const {
    if (!object.contains(key) || !object[key].is_number_unsigned())
      fail("the shard '" + text(object, "url").substr(0, 80) + "' has no '" + key + "' that is a number");
    return object[key].get<std::uint64_t>();
  }

  void list(const nlohmann::json& all, std::string base, wids_listing& found) const {
    if (all.contains("base") && !all["base"].is_null()) {
      base = joined(base, text(all, "base"));
      if (!base.empty() && base.back() != '/') base += '/';
    }
    if (!all["shardlist"].is_array()) fail("'shardlist' is not a list");
    for (const nlohmann::json& one : all["shardlist"]) {
      wids_shard said{joined(base, text(one, "url")), number(one, "nsamples"), std::nullopt};
      if (one.contains("filesize")) said.bytes = number(one, "filesize");
      found.path_bytes += said.path.size();
      if (found.path_bytes > wids_listing::max_bytes)
        throw error(errc::limit, "the paths of the shards, with their base, exceed 64 MiB in total")
            .in_file(path_);
      found.shards.push_back(std::move(said));
    }
  }

  std::string path_;
};

}  // namespace detail

/// A `webdataset` over the shards listed in a wids description, `shardindex.json`. The shards must match the
/// description.
///
/// In: the path of the description, and the options of `webdataset`. Relative names are relative to its
/// `base`, or to its folder. Lists in `datasets` are joined in order, and descriptions named there are read;
/// weights are ignored, and checksums are not verified. Out, kind, guarantees, cost, threads: as for
/// `webdataset`.
/// Throws what `webdataset` throws; `errc::format` with both names for a shard whose number of samples or
/// bytes differs from the description, for a description nested more than 16 deep, and with the offset for
/// one that is not JSON; `errc::limit` for a description of more than 64 MiB, before it is read, and if all
/// descriptions together, or all paths together, exceed that size.
/// Source: webdataset, wids_specs.py and wids_index.py.
///
///     auto samples = wids("shardindex.json") | shuffle | decode<field<"jpg", identity>>;
[[nodiscard]] inline webdataset<file> wids(const std::string& description, webdataset_options options = {}) {
  detail::wids_listing listing;
  detail::wids_reader(description).read(listing);
  std::vector<detail::wids_shard>& shards = listing.shards;
  if (shards.empty())
    throw error(errc::format, "the description lists no shard, and a dataset needs at least one shard")
        .in_file(description);
  std::vector<std::string> paths;
  for (detail::wids_shard& said : shards) paths.push_back(std::move(said.path));
  webdataset<file> data(std::move(paths), options);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const manifest::shard& found = data.manifest().shards()[i];
    const auto compare = [&](const char* what, std::uint64_t said, std::uint64_t has) {
      if (said == has) return;
      throw error(errc::format, "the description " + description + " says that the shard " + found.name +
                                    " has " + std::to_string(said) + " " + what + ", and it has " +
                                    std::to_string(has))
          .in_file(found.name);
    };
    if (shards[i].bytes) compare("bytes", *shards[i].bytes, found.bytes);
    compare("samples", shards[i].samples, found.samples);
  }
  return data;
}

}  // namespace penstock::inline v0_1

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/litdata_index.hpp needs nlohmann-json: link penstock::json"
#endif

#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/files/json_description.hpp>
#include <penstock/source/files/whole_file.hpp>
#include <penstock/source/records/mds_shards.hpp>

#include <nlohmann/json.hpp>

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
      chunk.bytes = count_at(one, "chunk_bytes", "a chunk");
      chunk.samples = count_at(one, "chunk_size", "a chunk");
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
};

}  // namespace detail

/// Reads the text of an `index.json` of LitData. Throws, as `read_litdata_index` does, without the file.
[[nodiscard]] inline litdata_index litdata_index_from_string(std::string_view text) {
  detail::check_index_size(text.size());
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
  const buffer bytes = detail::read_whole_file(path, detail::max_description_bytes, "an index of chunks");
  return detail::in_file(path, [&] { return detail::litdata_json::index(text_of(bytes.view())); });
}

}  // namespace penstock::inline v0_1

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component yaml. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<yaml.h>)
#error "penstock_yaml.hpp needs libyaml: link penstock::yaml"
#endif

#include "penstock.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>
#include <yaml.h>

// ---- penstock/source/files/yaml_document.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// A node of a YAML document: a text, a list, or a map in document order. `offset` is its position in the
/// file.
struct yaml_node {
  enum class kind { text, list, map };
  kind what = kind::text;
  std::string text;
  std::vector<yaml_node> items;   // of a list, or the values of a map
  std::vector<std::string> keys;  // of a map
  std::uint64_t offset = 0;

  /// The value of a key; null if there is none.
  [[nodiscard]] const yaml_node* find(std::string_view key) const noexcept {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] == key) return &items[i];
    }
    return nullptr;
  }
};

/// Reads one YAML document (JSON included) as plain data: no aliases, so nothing can grow beyond the file;
/// keys are texts and unique; at most 16 deep. Throws errc::format and errc::limit with the offset.
class yaml_document {
 public:
  [[nodiscard]] static yaml_node read(bytes_view bytes) {
    yaml_document reading(bytes);
    while (reading.next() != YAML_DOCUMENT_START_EVENT) {
      if (reading.is(YAML_STREAM_END_EVENT)) throw error(errc::format, "the YAML is empty").at_offset(0);
    }
    reading.next();
    yaml_node found = reading.node(0);
    reading.next();  // the end of the document
    if (reading.next() != YAML_STREAM_END_EVENT) reading.fail("a second document begins");
    return found;
  }

 private:
  static constexpr int deepest = 16;

  explicit yaml_document(bytes_view bytes) : parser_(new yaml_parser_t) {
    if (yaml_parser_initialize(parser_.get()) == 0) {
      delete parser_.release();
      throw std::bad_alloc();
    }
    const std::string_view text = bytes.empty() ? "" : text_of(bytes);  // never a null pointer
    yaml_parser_set_input_string(parser_.get(), reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }

  struct free_parser {
    void operator()(yaml_parser_t* parser) const noexcept {
      yaml_parser_delete(parser);
      delete parser;
    }
  };
  struct owned_event {
    yaml_event_t value{};
    owned_event() = default;
    owned_event(const owned_event&) = delete;
    owned_event& operator=(const owned_event&) = delete;
    ~owned_event() { yaml_event_delete(&value); }
    void clear() noexcept {
      yaml_event_delete(&value);
      value = {};
    }
  };

  [[nodiscard]] bool is(yaml_event_type_t type) const noexcept { return event_.value.type == type; }
  [[noreturn]] void fail(const char* what) const {
    throw error(errc::format, {"the YAML cannot be read: ", what}).at_offset(event_.value.start_mark.index);
  }

  yaml_event_type_t next() {
    event_.clear();
    if (yaml_parser_parse(parser_.get(), &event_.value) != 0) return event_.value.type;
    if (parser_->error == YAML_MEMORY_ERROR) throw std::bad_alloc();
    const std::uint64_t at =
        parser_->error == YAML_READER_ERROR ? parser_->problem_offset : parser_->problem_mark.index;
    throw error(errc::format,
                {"this is not YAML: ", std::string_view(parser_->problem == nullptr ? "" : parser_->problem)})
        .at_offset(at);
  }
  [[nodiscard]] std::string scalar() const {
    const auto& text = event_.value.data.scalar;
    return {reinterpret_cast<const char*>(text.value), text.length};
  }

  /// The node that begins with the current event.
  [[nodiscard]] yaml_node node(int depth) {
    if (depth > deepest) {
      throw error(errc::limit, "the YAML is nested more than 16 deep")
          .at_offset(event_.value.start_mark.index);
    }
    yaml_node made;
    made.offset = event_.value.start_mark.index;
    if (is(YAML_SCALAR_EVENT)) {
      made.text = scalar();
    } else if (is(YAML_SEQUENCE_START_EVENT)) {
      made.what = yaml_node::kind::list;
      while (next() != YAML_SEQUENCE_END_EVENT) made.items.push_back(node(depth + 1));
    } else if (is(YAML_MAPPING_START_EVENT)) {
      made.what = yaml_node::kind::map;
      std::unordered_set<std::string> seen;
      while (next() != YAML_MAPPING_END_EVENT) {
        if (!is(YAML_SCALAR_EVENT)) fail("a key is not text");
        made.keys.push_back(scalar());
        if (!seen.insert(made.keys.back()).second) fail("a key appears twice");
        next();
        made.items.push_back(node(depth + 1));
      }
    } else {
      fail("it has an alias, which is for programs; write the value out");
    }
    return made;
  }

  std::unique_ptr<yaml_parser_t, free_parser> parser_;
  owned_event event_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/energon.hpp

namespace penstock::inline v0_1 {

/// What Energon's metadata says about one part of a dataset.
struct energon_part {
  std::vector<std::string> paths;             ///< the shards, in order
  std::vector<std::uint64_t> samples;         ///< the number of samples in each shard
  std::vector<std::string> excluded_samples;  ///< as "shard/key", in any part
};

namespace detail {

/// Reads the `.nv-meta` of a folder.
class energon_reader {
 public:
  explicit energon_reader(std::string_view folder)
      : folder_(files::local_path(folder)), meta_(folder_ + "/.nv-meta/") {}

  [[nodiscard]] energon_part read(std::string_view part) {
    const auto counts = shard_counts();
    const yaml_node split = first_of("split.yaml", "split.json");
    energon_part made;
    std::unordered_set<std::string> excluded;
    if (const yaml_node* const said = split.find("exclude")) {
      for (std::string& name : names(*said, "exclude", counts.size() + 1'000'000)) {
        if (!counts.contains(name) && name.find('/') != std::string::npos)
          made.excluded_samples.push_back(name);
        excluded.insert(std::move(name));
      }
    }
    const yaml_node& parts = member(split, "split_parts", yaml_node::kind::map, "a map");
    const yaml_node* const wanted = parts.find(part);
    if (wanted == nullptr) {
      std::string known;
      for (const std::string& name : parts.keys) list_name(known, name);
      throw error(errc::missing, {"the dataset has no part '", part, "'; it has: ", known}).in_file(path_);
    }
    for (const std::string& name : names(*wanted, "split_parts", counts.size() + 1'000)) {
      if (excluded.contains(name)) continue;
      const auto count = counts.find(name);
      if (count == counts.end())
        fail(*wanted, "names the shard '" + name + "', which the dataset's .info does not; prepare it again");
      made.paths.push_back(folder_ + "/" + name);
      made.samples.push_back(count->second);
    }
    if (made.paths.empty()) fail(*wanted, "leaves no shard for the part '" + std::string(part) + "'");
    return made;
  }

 private:
  static constexpr std::size_t max_bytes = 64_MiB;

  /// Reads the first of the two files that exists.
  [[nodiscard]] yaml_node first_of(const char* name, const char* other) {
    path_ = meta_ + name;
    if (::access(path_.c_str(), F_OK) != 0 && ::access((meta_ + other).c_str(), F_OK) == 0)
      path_ = meta_ + other;
    const buffer bytes = read_whole_file(path_, max_bytes, "a description of a dataset");
    try {
      yaml_node made = yaml_document::read(bytes.view());
      if (made.what != yaml_node::kind::map) fail(made, "is not a map");
      return made;
    } catch (error& e) {
      e.in_file(path_);
      throw;
    }
  }

  [[nodiscard]] std::unordered_map<std::string, std::uint64_t> shard_counts() {
    const yaml_node info = first_of(".info.json", ".info.yaml");
    const yaml_node& all = member(info, "shard_counts", yaml_node::kind::map, "a map");
    std::unordered_map<std::string, std::uint64_t> counts;
    for (std::size_t i = 0; i < all.keys.size(); ++i) {
      const std::string& text = all.items[i].text;
      std::uint64_t count = 0;
      const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), count);
      if (all.items[i].what != yaml_node::kind::text || code != std::errc{} ||
          end != text.data() + text.size())
        fail(all.items[i], "has no number of samples for the shard '" + all.keys[i] + "'");
      check_name(all.items[i], all.keys[i]);
      counts.emplace(all.keys[i], count);
    }
    return counts;
  }

  /// Shards lie in the folder: a description must not lead us to files outside it.
  void check_name(const yaml_node& at, std::string_view name) const {
    if (!stays_in_folder(name))
      fail(at, "names a shard outside the dataset's folder: '" + std::string(name) + "'");
  }

  /// The texts of a list with their braces expanded: at most `maximum` names and 64 MiB in total, counted
  /// before any is made, because a few bytes of braces can stand for more names than fit in memory.
  [[nodiscard]] std::vector<std::string> names(const yaml_node& list, const char* key,
                                               std::uint64_t maximum) const {
    if (list.what != yaml_node::kind::list) fail(list, std::string("has a '") + key + "' that is not a list");
    std::vector<std::string> made;
    std::uint64_t text = 0;
    for (const yaml_node& one : list.items) {
      if (one.what != yaml_node::kind::text)
        fail(one, std::string("has a '") + key + "' with an entry that is not a name");
      try {
        const auto measured = braces::measure(one.text);
        if (made.size() + measured.names > maximum)
          throw error(errc::format, {"the description's '", key, "' stands for more than ", maximum,
                                     " names, far more than the dataset has shards"});
        text += measured.text;
        if (text > max_bytes)
          throw error(errc::format, {"the description's '", key, "' stands for more than 64 MiB of names"});
        for (std::string& name : expand_braces(one.text)) made.push_back(std::move(name));
      } catch (const error& e) {  // expand_braces reports a bad argument; here it is bad file content
        throw error(errc::format, e.message()).in_file(path_).at_offset(one.offset);
      }
    }
    return made;
  }

  [[nodiscard]] const yaml_node& member(const yaml_node& map, const char* key, yaml_node::kind kind,
                                        const char* wanted) const {
    const yaml_node* const found = map.find(key);
    if (found == nullptr || found->what != kind)
      fail(map, std::string("has no '") + key + "' that is " + wanted);
    return *found;
  }

  [[noreturn]] void fail(const yaml_node& at, const std::string& what) const {
    throw error(errc::format, "the description " + what).in_file(path_).at_offset(at.offset);
  }

  std::string folder_, meta_;
  std::string path_;  // of the file read last
};

}  // namespace detail

/// Reads from the `.nv-meta` of a dataset prepared by Megatron-Energon what one part of it, such as "train",
/// contains: its shards in order, and the number of samples in each.
///
/// In: the dataset's folder and the name of the part. It reads `.info.json` or `.info.yaml`, and `split.yaml`
/// or `split.json`, as plain data: at most 64 MiB each, nested at most 16 deep, without aliases. Braces in
/// names are expanded; shards in `exclude` are left out. `index.sqlite` is not read: the offsets it holds can
/// be read from the shards.
/// Throws, with the file: `errc::io`; `errc::format`, with the offset, if the content is not such a
/// description, for a shard without a number of samples and for names that lead out of the folder;
/// `errc::missing` for an unknown part, with the names of the known ones; `errc::limit`.
/// Source: Megatron-Energon, structs.py and metadata.py of its webdataset flavour.
[[nodiscard]] inline energon_part read_energon_part(const std::string& folder, std::string_view part) {
  return detail::energon_reader(folder).read(part);
}

/// One part of a dataset prepared by Megatron-Energon: a `webdataset` over its shards, which must hold
/// exactly as many samples as the metadata says.
///
///     auto samples = energon("coco", "train") | shuffle | decode<field<"jpg", identity>>;
///
/// In: the dataset's folder, the name of the part, and the options of `webdataset`; with
/// `index_policy::energon` the dataset's own `.tar.idx` files are used. Out, kind, guarantees, cost, threads:
/// as for `webdataset`.
/// Throws what `read_energon_part` and `webdataset` throw; `errc::format` with both files for a shard with a
/// different number of samples; `errc::argument` if `exclude` names single samples, which an indexed source
/// cannot leave out: use `webdataset(read_energon_part(...).paths)` with a `filter` instead.
[[nodiscard]] inline webdataset<file> energon(const std::string& folder, std::string_view part,
                                              webdataset_options options = {}) {
  energon_part said = read_energon_part(folder, part);
  if (!said.excluded_samples.empty()) {
    throw error(errc::argument,
                {"the split excludes single samples, '", said.excluded_samples.front(),
                 "' for one: write webdataset(read_energon_part(...).paths) and a filter by key"})
        .in_file(folder + "/.nv-meta");
  }
  webdataset<file> data(std::move(said.paths), options);
  for (std::size_t i = 0; i < said.samples.size(); ++i) {
    const manifest::shard& found = data.manifest().shards()[i];
    if (found.samples == said.samples[i]) continue;
    throw error(errc::format,
                {"the metadata in ", folder, "/.nv-meta says that the shard ", found.name, " has ",
                 said.samples[i], " samples, and it has ", found.samples, "; prepare the dataset again"})
        .in_file(found.name);
  }
  return data;
}

/// Datasets of Megatron-Energon for `dataset`, recognised by their `.nv-meta`: the part of this name.
struct energon_format {
  static constexpr std::string_view name = "energon";
  using sources = std::variant<webdataset<file>>;

  std::string part = "train";
  webdataset_options options = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return there.has(".nv-meta") ? format_fit::description : format_fit::none;
  }
  [[nodiscard]] sources open(const dataset_listing& there) const {
    return energon(there.path(), part, options);
  }
};

}  // namespace penstock::inline v0_1

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<yaml.h>)
#error "penstock/source/energon.hpp needs libyaml: link penstock::yaml"
#endif

#include <penstock/base/name_list.hpp>
#include <penstock/source/dataset_format.hpp>
#include <penstock/source/files/whole_file.hpp>
#include <penstock/source/files/yaml_document.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/braces.hpp>
#include <penstock/storage/file_names.hpp>

#include <unistd.h>

#include <charconv>
#include <unordered_map>

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
    const yaml_node& parts = map_at(split, "split_parts");
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
    return in_file(path_, [&] {
      yaml_node made = yaml_document::read(bytes.view());
      if (made.what != yaml_node::kind::map) fail(made, "is not a map");
      return made;
    });
  }

  [[nodiscard]] std::unordered_map<std::string, std::uint64_t> shard_counts() {
    const yaml_node info = first_of(".info.json", ".info.yaml");
    const yaml_node& all = map_at(info, "shard_counts");
    std::unordered_map<std::string, std::uint64_t> counts;
    for (std::size_t i = 0; i < all.keys.size(); ++i) {
      const std::string& text = all.items[i].text;
      std::uint64_t count = 0;
      const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), count);
      if (all.items[i].what != yaml_node::kind::text || code != std::errc{} ||
          end != text.data() + text.size())
        fail(all.items[i], "has no number of samples for the shard '" + all.keys[i] + "'");
      // A description must not lead us to files outside its folder.
      if (!stays_in_folder(all.keys[i]))
        fail(all.items[i], "names a shard outside the dataset's folder: '" + all.keys[i] + "'");
      counts.emplace(all.keys[i], count);
    }
    return counts;
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

  [[nodiscard]] const yaml_node& map_at(const yaml_node& map, const char* key) const {
    const yaml_node* const found = map.find(key);
    if (found == nullptr || found->what != yaml_node::kind::map)
      fail(map, std::string("has no '") + key + "' that is a map");
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
/// In: the dataset's folder, the name of the part, and the options of `webdataset`; with `energon_index` the
/// dataset's own `.tar.idx` files are used. Out, kind, guarantees, cost, threads:
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

  std::string part = "train";
  webdataset_options options = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return there.has(".nv-meta") ? format_fit::description : format_fit::none;
  }
  [[nodiscard]] std::variant<webdataset<file>> open(const dataset_listing& there) const {
    return energon(there.path(), part, options);
  }
};

}  // namespace penstock::inline v0_1

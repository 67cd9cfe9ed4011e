// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/wids.hpp needs nlohmann-json: link penstock::json"
#endif

#include <penstock/source/files/json_description.hpp>
#include <penstock/source/files/whole_file.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/webdataset.hpp>

#include <nlohmann/json.hpp>

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
    return in_file(path_, [&] { return parse_description(text_of(bytes.view())); });
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
    return in_file(path_, [&] {
      return count_at(object, key, "the shard '" + text(object, "url").substr(0, 80) + "'");
    });
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

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/lhotse_shar.hpp needs nlohmann-json: link penstock::json"
#endif

#include <penstock/source/audio_manifest.hpp>
#include <penstock/source/records/shard_stream.hpp>
#include <penstock/source/tar/tar_shards.hpp>
#include <penstock/source/tar/tar_walk.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/session_view.hpp>

#include <dirent.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>

namespace penstock::inline v0_1 {

/// Options of `lhotse_shar`.
struct lhotse_shar_options {
  /// The field whose sounds are read: that of another recording, such as "target_recording".
  std::string field = "recording";
  /// How many seconds a cut may reach beyond the end of its sound, where it is then cut: Lhotse's tolerance.
  double max_overshoot = 0.025;
};

namespace detail {

struct folder_closer {
  void operator()(DIR* opened) const noexcept { ::closedir(opened); }
};
/// The paths of the files in a folder, sorted.
[[nodiscard]] inline std::vector<std::string> shar_files_in(const std::string& folder) {
  std::vector<std::string> found;
  const std::unique_ptr<DIR, folder_closer> opened(::opendir(folder.c_str()));
  if (!opened) throw files::failure("open the folder", folder, errno);
  while (const dirent* const item = ::readdir(opened.get()))
    if (item->d_name[0] != '.') found.push_back(folder + static_cast<const char*>(item->d_name));
  std::ranges::sort(found);
  return found;
}

struct shar_kind {
  static constexpr std::string_view source_name = "lhotse_shar";
};

/// Gathers the cuts of a folder of Lhotse Shar.
class shar_reader {
 public:
  shar_reader(const std::string& folder, const lhotse_shar_options& options,
              std::initializer_list<std::string_view> others, unpacker_calls unpack)
      : folder_(files::local_path(folder)),
        field_(options.field),
        names_(others),
        seen_(names_.size()),
        stream_(unpack, nullptr, tar_streams()) {
    made_.name = folder;
    made_.max_overshoot = options.max_overshoot;
    made_.others.resize(names_.size());
    if (!folder_.ends_with('/')) folder_ += '/';
  }

  [[nodiscard]] utterance_list read() {
    const std::vector<std::string> all = shar_files_in(folder_);
    made_.tables = shards_of(all, "cuts", ".jsonl");
    made_.files = shards_of(all, field_, ".tar");
    check_count(made_.files, field_);
    std::vector<std::vector<std::string>> own(names_.size());  // fields with files of their own
    for (std::size_t i = 0; i < names_.size(); ++i) {
      own[i] = with_ending(all, names_[i], ".jsonl");
      if (!own[i].empty()) check_count(own[i], names_[i]);
    }
    const file tars(made_.files);
    const auto session = tars.connect();
    std::vector<std::uint64_t> starts{0};
    for (std::uint32_t shard = 0; shard < made_.tables.size(); ++shard) {
      read_cuts(shard, own);
      find_sounds(shard, session, starts.back());
      if (made_.size() != starts.back()) starts.push_back(made_.size());
    }
    if (starts.size() > 1) made_.starts.reset(new const std::vector<std::uint64_t>(std::move(starts)));
    for (std::size_t i = 0; i < names_.size() && made_.size() != 0; ++i)
      if (!seen_[i])
        throw error(errc::missing, {"no cut has '", names_[i], "', nor has its first supervision"})
            .in_file(folder_);
    made_.close(shar_kind::source_name);
    return std::move(made_);
  }

 private:
  /// The files of a field: "field.000000.tar".
  [[nodiscard]] std::vector<std::string> with_ending(const std::vector<std::string>& all,
                                                     std::string_view field, std::string_view ending) const {
    std::vector<std::string> found;
    for (const std::string& path : all) {
      const std::string_view name = std::string_view(path).substr(folder_.size());
      if (name.substr(0, name.find('.')) == field && name.find(ending) != npos) found.push_back(path);
    }
    return found;
  }
  [[nodiscard]] std::vector<std::string> shards_of(const std::vector<std::string>& all,
                                                   std::string_view field, std::string_view ending) const {
    std::vector<std::string> found = with_ending(all, field, ending);
    if (found.empty())
      throw error(errc::missing,
                  {"there is no file '", field, ".000000", ending, "', as a folder of Shar has"})
          .in_file(folder_);
    return found;
  }
  void check_count(const std::vector<std::string>& found, std::string_view field) const {
    if (found.size() != made_.tables.size())
      throw error(errc::format, {"there are ", made_.tables.size(), " shards of cuts, and ", found.size(),
                                 " of '", field, "'"})
          .in_file(folder_);
  }
  /// The content of a file, which may be packed.
  [[nodiscard]] std::string read_lines(const std::string& path) {
    return in_file(path, [&] {
      std::atomic<bool> used = false;
      stream_.open(path, used, shar_kind::source_name);
      std::string content;
      for (std::size_t made = 0;;) {
        content.resize(std::max<std::size_t>(1 << 20, made * 2));
        made += stream_.read(std::as_writable_bytes(std::span(content)).subspan(made));
        if (made == content.size()) continue;
        content.resize(made);
        stream_.close();
        return content;
      }
    });
  }

  void read_cuts(std::uint32_t shard, const std::vector<std::vector<std::string>>& own) {
    const std::size_t first = made_.all.size();
    const std::string& path = made_.tables[shard];
    each_json_line(path, read_lines(path), [&](const json_value& cut, std::uint32_t line) {
      const std::string& type = manifest_text(cut, "type");
      if (type != "MonoCut" && type != "MultiCut")
        throw error(errc::format, {"the cut is a ", type, ", and sounds are of a MonoCut or a MultiCut"});
      utterance one{.file = shard, .table = shard, .line = line};
      one.offset = checked_seconds(manifest_number(cut, "start"), "\"start\"", true);
      one.duration = checked_seconds(manifest_number(cut, "duration"), "\"duration\"");
      one.channel = channel_of(cut);
      made_.keys.add(manifest_text(cut, "id"));
      made_.texts.add(text_of_cut(cut));
      for (std::size_t i = 0; i < names_.size(); ++i) {
        if (!own[i].empty()) continue;
        const json_value* const value = value_of(cut, names_[i]);
        seen_[i] = seen_[i] || value != nullptr;
        if (value == nullptr)
          made_.others[i].add({});
        else
          add_manifest_value(made_.others[i], *value);
      }
      made_.all.push_back(one);
    });
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (!own[i].empty()) read_own(i, own[i][shard], first);
  }
  /// A field that stands in a file of its own, for the cuts from `next` on.
  void read_own(std::size_t i, const std::string& path, std::size_t next) {
    each_json_line(path, read_lines(path), [&](const json_value& line, std::uint32_t) {
      check_id(next, manifest_text(line, "cut_id"), names_[i]);
      ++next;
      if (const auto found = line.find(names_[i]); found != line.end())
        add_manifest_value(made_.others[i], *found);
      else
        made_.others[i].add({});
    });
    if (next != made_.size()) few(next, path, names_[i]);
    seen_[i] = true;
  }
  void check_id(std::size_t i, std::string_view id, std::string_view field) const {
    if (i == made_.size())
      throw error(errc::format, {"'", id, "' of '", field, "' is of no cut: the shard has fewer"});
    if (made_.keys[i] != id)
      throw error(errc::format, {"the cut '", made_.keys[i], "' meets '", id, "' of '", field,
                                 "': both have to be in one order"});
  }
  [[noreturn]] void few(std::size_t i, const std::string& path, std::string_view field) const {
    throw error(errc::format,
                {"the cut '", made_.keys[i], "' has no '", field, "': the shard ends before it"})
        .in_file(path);
  }

  /// Where the sounds of a shard are: members of an archive, each with one of JSON behind it.
  void find_sounds(std::uint32_t shard, session_view session, std::uint64_t first) {
    const std::string& path = made_.files[shard];
    std::size_t next = to_size(first);
    in_file(path, [&] {
      tar::member_scan scan(session, shard, session.size(shard), default_extension_limit);
      shard_member one;
      for (bool is_sound = true; scan.next(one); is_sound = !is_sound) {
        if (!is_sound) continue;
        std::string_view name = one.path;
        while (name.starts_with("./")) name.remove_prefix(2);
        const std::size_t dot = name.find('.', name.rfind('/') + 1) == npos ? name.size() : name.rfind('.');
        const std::string_view extension = name.substr(dot);
        check_id(next, name.substr(0, dot), field_);
        if (extension == ".nodata")
          throw error(errc::missing, {"the cut '", made_.keys[next], "' has no '", field_,
                                      "', and all cuts must have it: write the others to another folder"})
              .at_offset(one.header);
        if (extension == ".llc")
          throw error(errc::argument, {"'", field_,
                                       "' is packed by lilcom, which is read by Lhotse alone; make "
                                       "features of the recording, as with log_mel"});
        made_.stretches.push_back({one.data, one.size});
        ++next;
      }
    });
    if (next != made_.size()) few(next, path, field_);
  }

  [[nodiscard]] static std::string text_of_cut(const json_value& cut) {
    std::string all;
    if (const auto found = cut.find("supervisions"); found != cut.end() && found->is_array())
      for (const json_value& one : *found) {
        if (!one.is_object() || !one.contains("text")) continue;
        if (!all.empty()) all += ' ';
        all += manifest_text(one, "text");
      }
    return all;
  }
  /// The channel of a cut, among those of its sound; all, if the sound has no others.
  [[nodiscard]] std::int32_t channel_of(const json_value& cut) const {
    const auto channel = cut.find("channel");
    const json_value* const sound = value_of(cut, field_);
    if (channel == cut.end() || !channel->is_number_integer() || sound == nullptr || !sound->is_object() ||
        !sound->contains("channel_ids") || !(*sound)["channel_ids"].is_array())
      return -1;
    const json_value& ids = (*sound)["channel_ids"];
    const auto found = std::find(ids.begin(), ids.end(), *channel);
    if (ids.size() < 2 || field_ != "recording") return -1;
    if (found == ids.end()) throw error(errc::format, "\"channel\" is none of the recording's");
    return static_cast<std::int32_t>(found - ids.begin());
  }
  /// Of a cut itself, of its custom values, or of its first supervision.
  [[nodiscard]] static const json_value* value_of(const json_value& cut, std::string_view name) {
    const auto look = [&](const json_value& in) -> const json_value* {
      for (const json_value* const all : {&in, in.contains("custom") ? &in["custom"] : nullptr})
        if (all != nullptr && all->is_object())
          if (const auto found = all->find(name); found != all->end()) return &*found;
      return nullptr;
    };
    if (const json_value* const found = look(cut)) return found;
    const auto spoken = cut.find("supervisions");
    if (spoken == cut.end() || !spoken->is_array() || spoken->empty() || !spoken->front().is_object())
      return nullptr;
    return look(spoken->front());
  }

  static constexpr std::size_t npos = std::string_view::npos;

  std::string folder_, field_;
  std::vector<std::string_view> names_;
  std::vector<bool> seen_;
  shard_stream stream_;
  utterance_list made_;
};

}  // namespace detail

/// Cuts of Lhotse Shar: a folder with `cuts.000000.jsonl.gz`, `recording.000000.tar` and so on, as
/// `SharWriter` and `CutSet.to_shar` write it.
///
///     auto cuts = lhotse_shar<unpack_gzip, "speaker">("shar");
///     auto loader = cuts | decode<field<"audio", audio>> | shuffle(seed(7), window(4)) |
///                   bucket_by(cuts.durations(), 30, {.max_duration = std::chrono::minutes(10)}, ragged);
///     auto targets = lhotse_shar<unpack_gzip>("shar", {.field = "target_recording"});
///
/// In: a folder; `unpack_gzip`, unless the files of cuts are not compressed. Then in <>: further values of
/// cuts, of their custom values or of their first supervisions ("speaker", "language"), or of files of their
/// own (`topic.000000.jsonl.gz`); a cut that has no such value has an empty text. "supervisions" is all of
/// them, as JSON.
/// Out: as `audio_manifest`. "offset" is the cut's start in the sound that the shard has, "text" the texts of
/// its supervisions with blanks between them. The key is the cut's. A shard is a shard for `shuffle`. With
/// `.field` other sounds are read, or arrays: `decode<field<"audio", npy<float>>>` for features that were
/// saved as numpy's.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan reads the files of
/// cuts and the headers of the archives, in the thread that calls, and keeps 48 bytes for each cut and its
/// texts.
/// Cost per sample, and threads: as for `audio_manifest`; a sound lies within its shard, which is mapped.
/// Throws, with file and line, `errc::format` for cuts that are not as Lhotse writes them, and for archives
/// with other sounds, or in another order; `errc::missing` if there are no such files, for a cut without a
/// recording, and for a value that no cut has; `errc::argument` for files that are compressed, without an
/// unpacker, and for features that lilcom packed. For a sample, `errc::shape` for a cut that is not within
/// its sound.
/// Source: lhotse 1.33, shar/writers/shar.py and shar/readers/lazy.py.
template <unpacker Unpack, fixed_string... Names>
[[nodiscard]] utterance_source<detail::shar_kind, name_of<Names>...> lhotse_shar(
    const std::string& folder, const lhotse_shar_options& options = {}) {
  using made = utterance_source<detail::shar_kind, name_of<Names>...>;
  detail::unpackers<Unpack> unpack;
  return made(detail::shar_reader(folder, options, {name_of<Names>::value...}, unpack.calls()).read());
}
template <fixed_string... Names>
[[nodiscard]] utterance_source<detail::shar_kind, name_of<Names>...> lhotse_shar(
    const std::string& folder, const lhotse_shar_options& options = {}) {
  using made = utterance_source<detail::shar_kind, name_of<Names>...>;
  detail::unpackers<> unpack;
  return made(detail::shar_reader(folder, options, {name_of<Names>::value...}, unpack.calls()).read());
}

}  // namespace penstock::inline v0_1

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/audio_manifest.hpp needs nlohmann-json: link penstock::json"
#endif

#include <penstock/codec/json.hpp>
#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/files/whole_file.hpp>
#include <penstock/source/text/utterances.hpp>

#include <sys/stat.h>

#include <charconv>
#include <concepts>
#include <deque>
#include <iterator>
#include <unordered_map>

namespace penstock::inline v0_1 {

/// Options of `audio_manifest`.
struct audio_manifest_options {
  /// The folder that relative paths of sounds are relative to. Empty: that of the manifest; for a folder of
  /// Kaldi the current one, as in Kaldi's recipes.
  std::string root = {};
  /// How many seconds a segment may reach beyond the end of its sound, where it is then cut: durations in
  /// manifests are rounded. Lhotse allows as much; Kaldi's `extract-segments` 0.5.
  double max_overshoot = 0.025;
};

namespace detail {

/// `work()`, whose errors name the manifest and the line.
template <class Work>
void at_manifest_line(const std::string& path, std::uint32_t line, Work&& work) {
  try {
    work();
  } catch (error& e) {
    e.in_part(text({"line ", line})).in_file(path);
    throw;
  }
}

/// Calls `each(line, number)` for the lines of a text that are not blank, without the blanks around them.
template <class Each>
void each_manifest_line(const std::string& path, std::string_view text, Each&& each) {
  constexpr std::string_view blanks = " \t\r";
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  for (std::uint32_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t first = line.find_first_not_of(blanks);
    if (first == std::string_view::npos) continue;
    line = line.substr(first, line.find_last_not_of(blanks) + 1 - first);
    at_manifest_line(path, number, [&] { each(line, number); });
  }
}

/// A time of a manifest. Throws `errc::format` unless it is from 0 to a year, and not 0 unless `or_none`.
inline double checked_seconds(double seconds, std::string_view name, bool or_none = false) {
  constexpr double year = 366.0 * 86'400;
  if (!(seconds >= 0 && seconds <= year) || (seconds == 0 && !or_none))
    throw error(errc::format, {name, " is ", number_text(seconds), ", and must be seconds, ",
                               or_none ? "from 0" : "more than 0", " and up to a year"});
  return seconds;
}

/// A value of a line of JSON, which it must have.
[[nodiscard]] inline const json_value& manifest_value(const json_value& line, std::string_view name) {
  const auto found = line.find(name);
  if (found == line.end()) throw error(errc::format, {"there is no \"", name, "\""});
  return *found;
}
[[nodiscard]] inline double manifest_number(const json_value& line, std::string_view name) {
  const json_value& value = manifest_value(line, name);
  if (!value.is_number())
    throw error(errc::format,
                {"\"", name, "\" should be a number, and is JSON of the type ", value.type_name()});
  return value.get<double>();
}
[[nodiscard]] inline const std::string& manifest_text(const json_value& line, std::string_view name) {
  const json_value& value = manifest_value(line, name);
  if (!value.is_string())
    throw error(errc::format,
                {"\"", name, "\" should be a text, and is JSON of the type ", value.type_name()});
  return value.get_ref<const std::string&>();
}
/// A text as it is, and the JSON of anything else.
inline void add_manifest_value(text_list& list, const json_value& value) {
  list.add(value.is_string() ? value.get_ref<const std::string&>() : value.dump());
}

/// Calls `each(object, number)` for the lines of JSON.
template <class Each>
void each_json_line(const std::string& path, std::string_view text, Each&& each) {
  no_scratch none;
  each_manifest_line(path, text, [&](std::string_view line, std::uint32_t number) {
    const json_value value = json{.limit = 1_GiB}.decode(line, none);
    if (!value.is_object()) throw error(errc::format, "this is not an object of JSON, as a line must be");
    each(value, number);
  });
}

/// Gathers the utterances of manifests.
class manifest_reader {
 public:
  manifest_reader(std::string name, const audio_manifest_options& options,
                  std::initializer_list<std::string_view> others)
      : root_(options.root.empty() ? std::string() : files::local_path(options.root)), names_(others) {
    made_.name = std::move(name);
    made_.max_overshoot = options.max_overshoot;
    made_.others.resize(names_.size());
    if (!root_.empty() && root_.back() != '/') root_ += '/';
  }

  void read_json(const std::string& path) {
    const buffer bytes = read_whole_file(path);
    const std::string root = root_.empty() ? path.substr(0, path.rfind('/') + 1) : root_;
    made_.tables.push_back(path);
    each_json_line(path, text_of(bytes.view()), [&](const json_value& line, std::uint32_t number) {
      utterance one{.line = number};
      one.file = file_number(root, manifest_text(line, "audio_filepath"));
      if (line.contains("offset") && !line["offset"].is_null())
        one.offset = checked_seconds(manifest_number(line, "offset"), "\"offset\"", true);
      one.duration = checked_seconds(manifest_number(line, "duration"), "\"duration\"");
      for (std::size_t i = 0; i < names_.size(); ++i)
        add_manifest_value(made_.others[i], manifest_value(line, names_[i]));
      made_.texts.add(line.contains("text") ? std::string_view(manifest_text(line, "text"))
                                            : std::string_view());
      add(one);
    });
  }

  /// A folder with wav.scp, and perhaps segments, text, utt2dur and others.
  void read_kaldi(const std::string& folder) {
    folder_ = folder.ends_with('/') ? folder : folder + "/";
    const table words = read_table("text", false), lengths = read_table("utt2dur", false);
    std::vector<table> others;
    for (const std::string_view name : names_) others.push_back(read_table(name, true));
    const auto add_texts = [&](std::string_view key) {
      made_.keys.add(key);
      made_.texts.add(words.find(key));
      for (std::size_t i = 0; i < others.size(); ++i) made_.others[i].add(others[i].find(key));
    };
    constexpr std::string_view in_table = "the duration in utt2dur";
    const auto known_length = [&](std::string_view key) {
      return lengths.path.empty() ? 0.0 : checked_seconds(number_in(lengths.find(key), in_table), in_table);
    };
    const table sounds = read_table("wav.scp", true);
    if (::access((folder_ + "segments").c_str(), F_OK) != 0) {
      made_.tables.push_back(sounds.path);
      each_row(sounds, [&](std::string_view key, std::string_view file, std::uint32_t line) {
        add_texts(key);
        add({.duration = known_length(key), .file = kaldi_file(key, file), .line = line});
      });
      return;
    }
    std::unordered_map<std::string_view, std::uint32_t> recordings;
    each_row(sounds, [&](std::string_view key, std::string_view file, std::uint32_t) {
      recordings.emplace(key, kaldi_file(key, file));
    });
    const table segments = read_table("segments", true);
    made_.tables.push_back(segments.path);
    each_row(segments, [&](std::string_view key, std::string_view rest, std::uint32_t line) {
      const std::string_view recording = word(rest), begin = word(rest), end = word(rest),
                             channel = word(rest);
      const auto found = recordings.find(recording);
      if (found == recordings.end())
        throw error(errc::missing, {"the recording '", recording, "' is not in wav.scp"});
      utterance one{.file = found->second, .line = line};
      one.offset = checked_seconds(number_in(begin, "the beginning"), "the beginning", true);
      const double until = number_in(end, "the end");
      // Kaldi's -1 is the end of the recording
      one.duration = until == -1 ? known_length(key) : checked_seconds(until - one.offset, "the length");
      if (!channel.empty()) one.channel = number_in<std::int32_t>(channel, "the channel");
      add_texts(key);
      add(one);
    });
  }

  [[nodiscard]] utterance_list done(std::string_view source) {
    made_.fingerprint = mark_.value();
    made_.files.assign(std::make_move_iterator(files_.begin()), std::make_move_iterator(files_.end()));
    made_.close(source);
    return std::move(made_);
  }

 private:
  /// A file of Kaldi: lines of a key and what belongs to it.
  struct table {
    struct row {
      std::string_view value;
      std::uint32_t line = 0;
    };
    std::string path;  // empty: there is no such file
    buffer bytes;
    std::unordered_map<std::string_view, row> rows;

    [[nodiscard]] std::string_view find(std::string_view key) const {
      if (path.empty()) return {};
      const auto found = rows.find(key);
      if (found == rows.end())
        throw error(errc::missing,
                    {"the utterance '", key, "' is not in ", path, "; run utils/fix_data_dir.sh"});
      return found->second.value;
    }
  };

  /// The first word of a text, which is taken away.
  [[nodiscard]] static std::string_view word(std::string_view& text) noexcept {
    constexpr std::string_view blanks = " \t";
    const std::size_t end = std::min(text.find_first_of(blanks), text.size());
    const std::string_view found = text.substr(0, end);
    text.remove_prefix(std::min(text.find_first_not_of(blanks, end), text.size()));
    return found;
  }
  template <class T = double>
  [[nodiscard]] static T number_in(std::string_view digits, std::string_view what) {
    T value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc{} || end != digits.data() + digits.size())
      throw error(errc::format, {what, std::integral<T> ? " should be a whole number" : " should be a number",
                                 ", and is '", digits.substr(0, 80), "'"});
    return value;
  }
  [[nodiscard]] table read_table(std::string_view name, bool needed) {
    table made;
    std::string path = folder_ + std::string(name);
    if (!needed && ::access(path.c_str(), F_OK) != 0) return made;
    made.path = std::move(path);
    made.bytes = read_whole_file(made.path);
    each_row(made, [&](std::string_view key, std::string_view value, std::uint32_t line) {
      if (!made.rows.try_emplace(key, table::row{value, line}).second)
        throw error(errc::format, {"'", key, "' is there twice"});
    });
    return made;
  }
  template <class Each>
  static void each_row(const table& of, Each&& each) {
    each_manifest_line(of.path, text_of(of.bytes.view()), [&](std::string_view line, std::uint32_t number) {
      const std::string_view key = word(line);
      each(key, line, number);
    });
  }

  [[nodiscard]] std::uint32_t kaldi_file(std::string_view key, std::string_view path) {
    if (path.ends_with('|') || path.starts_with('|') || path == "-")
      throw error(errc::argument, {"the recording '", key, "' comes from a command, '", path.substr(0, 80),
                                   "', and none is run here; run it once, and name its output in wav.scp"});
    const std::size_t colon = path.rfind(':');
    if (colon != std::string_view::npos && colon + 1 < path.size() &&
        path.find_first_not_of("0123456789", colon + 1) == std::string_view::npos)
      throw error(errc::argument, {"the recording '", key, "' lies within an archive of Kaldi, '",
                                   path.substr(0, 80), "'; write it to a file, as wav-copy does"});
    return file_number(root_, path);
  }
  [[nodiscard]] std::uint32_t file_number(const std::string& root, std::string_view path) {
    if (path.empty()) throw error(errc::format, "the path of the sound is empty");
    mark_.add(path);
    std::string whole = files::local_path(path);
    if (whole.front() != '/') whole.insert(0, root);
    if (const auto known = numbers_.find(whole); known != numbers_.end()) return known->second;
    const auto fresh = static_cast<std::uint32_t>(files_.size());
    numbers_.emplace(files_.emplace_back(std::move(whole)), fresh);
    return fresh;
  }
  void add(utterance one) {
    one.table = static_cast<std::uint32_t>(made_.tables.size() - 1);
    made_.all.push_back(one);
  }

  std::string root_, folder_;
  std::vector<std::string_view> names_;
  utterance_list made_;
  std::deque<std::string> files_;  // which do not move
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
  penstock::fingerprint mark_;
};

[[nodiscard]] inline bool is_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

struct manifest_kind {
  static constexpr std::string_view source_name = "audio_manifest";
};

}  // namespace detail

/// Utterances that a manifest lists: segments of sound files, with their texts. NeMo's manifests, and data
/// folders of Kaldi.
///
///     auto speech = audio_manifest<"speaker">("train.jsonl");
///     auto loader = speech | decode<field<"audio", audio>> | map<"audio">(mono()) | shuffle(seed(7)) |
///                   bucket_by(speech.durations(), 30, {.max_duration = std::chrono::minutes(10)}, ragged);
///     auto short_ones = speech | subset(speech.durations(), between(1'000, 20'000));
///     auto kaldi = audio_manifest("data/train", {.root = "/egs/librispeech/s5"});
///
/// In: a pattern of names, or a list of paths, of NeMo's manifests: lines of JSON with "audio_filepath",
/// "duration", and, if they are there, "offset" and "text"; paths are relative to the manifest's folder. Or a
/// folder of Kaldi with `wav.scp`, and, if they are there, `segments`, `text` and `utt2dur`. In <>: further
/// keys of NeMo's lines, or files of Kaldi's folder ("utt2spk"). Blank lines are passed over.
/// Out: records of "audio", the file as bytes, of which `decode<field<"audio", audio>>` makes a sound of the
/// segment alone; "offset" and "duration" in seconds, double (a duration of 0: to the end, where Kaldi's
/// folder does not say it); "text" and further fields as `std::string_view`, which are also byte elements:
/// anything but texts as JSON, for `decode<field<"snr", floating>>`. The key is "manifest:line", or Kaldi's.
/// `durations()` are milliseconds, which no sound is read for.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan reads the manifests,
/// and keeps them: 32 bytes, the texts, with 8 bytes each, and a path for each file. Sounds are looked at
/// when they are used.
/// Cost per sample: a file is mapped, unless it is among the last 16 of the worker; a segment reads the pages
/// that its decoder does. Threads: any number at once.
/// Throws, with manifest and line, `errc::format` for what is not JSON, lacks a key, or has a time that is
/// negative or no number; `errc::argument` for URLs, for recordings that a command of `wav.scp` makes or that
/// lie within archives, and if there are no utterances at all; `errc::missing` if `segments` names a
/// recording, or an utterance is not in a file of Kaldi's. For a sample, with the file and the key,
/// `errc::io` if the sound cannot be opened, and `errc::shape` for a segment that is not within it.
/// Source: NeMo, collections/common/parts/preprocessing/manifest.py; Kaldi, "Data preparation".
template <fixed_string... Names>
[[nodiscard]] utterance_source<detail::manifest_kind, name_of<Names>...> audio_manifest(
    detail::given_paths manifests, const audio_manifest_options& options = {}) {
  using made = utterance_source<detail::manifest_kind, name_of<Names>...>;
  const std::vector<std::string>& paths = manifests.names;
  std::string name = paths.empty() ? std::string("an empty list") : paths.front();
  if (paths.size() > 1) name += detail::text({" and ", paths.size() - 1, " more"});
  detail::manifest_reader reader(std::move(name), options, {name_of<Names>::value...});
  for (const std::string& path : paths) {
    if (!detail::is_folder(path))
      reader.read_json(path);
    else if (paths.size() == 1)
      reader.read_kaldi(path);
    else
      throw error(errc::argument, "a folder of Kaldi is read alone; join several with utils/combine_data.sh")
          .in_file(path);
  }
  return made(reader.done(made::source_name));
}

}  // namespace penstock::inline v0_1

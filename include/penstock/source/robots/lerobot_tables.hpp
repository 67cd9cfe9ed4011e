// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<parquet/arrow/reader.h>) || !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/robots/lerobot_tables.hpp needs Arrow C++ and nlohmann-json: link penstock::arrow"
#endif

#include <penstock/base/name_list.hpp>
#include <penstock/source/episodes.hpp>
#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/files/json_description.hpp>
#include <penstock/source/files/whole_file.hpp>
#include <penstock/source/lerobot_statistics.hpp>
#include <penstock/source/parquet.hpp>

#include <sys/stat.h>

#include <cmath>
#include <map>

namespace penstock::inline v0_1::detail {

/// What `meta/info.json` says of a feature.
struct lerobot_feature {
  std::string dtype;
  std::vector<std::uint64_t> shape;
};
/// Where an episode begins in a film, in seconds.
struct lerobot_film {
  std::size_t file = 0;
  double from = 0;
};

/// The tables of a LeRobot data set, as far as its rows are used: those of all files with an episode that is
/// asked for.
struct lerobot_tables {
  std::string folder;
  double fps = 0;
  std::map<std::string, lerobot_feature, std::less<>> features;
  std::map<std::string, lerobot_statistics, std::less<>> statistics;
  std::vector<std::string> tasks, data_files, film_files;
  std::vector<std::uint64_t> numbers, first_index;  // by episode, in the order of rows
  std::vector<lerobot_film> films;                  // by episode and camera
  std::vector<std::uint64_t> chosen;                // which of these episodes have samples
  std::vector<std::uint64_t> lengths;
  std::vector<float> times;         // by row
  std::vector<std::uint32_t> task;  // by row
  std::uint64_t mark = 0;

  [[nodiscard]] std::string info_path() const { return folder + "/meta/info.json"; }
  /// The feature of a column; of "camera.bytes", a field of a struct, the feature "camera".
  [[nodiscard]] const lerobot_feature& feature(std::string_view name) const {
    auto found = features.find(name);
    if (found == features.end() && name.ends_with(".bytes"))
      found = features.find(name.substr(0, name.size() - 6));
    if (found != features.end()) return found->second;
    std::string all;
    for (const auto& [other, said] : features) list_name(all, other);
    throw error(errc::argument, {"the data set has no feature '", name, "'; it has: ", all})
        .in_file(info_path());
  }
};

/// "data/chunk-000/file-003.parquet", of a form as Python's `format` has it.
[[nodiscard]] inline std::string lerobot_path(std::string_view form, std::string_view camera,
                                              std::uint64_t chunk, std::uint64_t file) {
  std::string made;
  for (std::string_view left = form; !left.empty();) {
    const std::size_t open = left.find('{'), close = left.find('}', open);
    made += left.substr(0, open);
    if (open == left.npos) break;
    const std::string_view inner = left.substr(open + 1, close - open - 1);
    const std::string_view name = inner.substr(0, inner.find(':')), digits = inner.substr(name.size());
    if (close == left.npos || (name != "video_key" && name != "chunk_index" && name != "file_index") ||
        (!digits.empty() &&
         (digits.size() != 4 || digits[1] != '0' || digits[2] < '1' || digits[2] > '9' || digits[3] != 'd')))
      throw error(errc::format,
                  {"the path '", form, "' has something in braces that is not known; known are ",
                   "{video_key}, {chunk_index:03d} and {file_index:03d}"});
    if (name == "video_key") {
      made += camera;
    } else {
      const std::string number = std::to_string(name == "chunk_index" ? chunk : file);
      const std::size_t wide = digits.empty() ? 1 : static_cast<std::size_t>(digits[2] - '0');
      made.append(wide > number.size() ? wide - number.size() : 0, '0').append(number);
    }
    left.remove_prefix(close + 1);
  }
  if (!stays_in_folder(made)) throw error(errc::format, {"the path '", made, "' leads out of the data set"});
  return made;
}

/// Reads the tables of a data set.
class lerobot_table_reader {
 public:
  /// `wanted`: the numbers of episodes; none: all.
  lerobot_table_reader(std::string_view folder, std::span<const std::string_view> cameras,
                       const std::vector<std::uint64_t>& wanted)
      : cameras_(cameras), wanted_(wanted) {
    made_.folder = files::local_path(folder);
    while (made_.folder.size() > 1 && made_.folder.ends_with('/')) made_.folder.pop_back();
  }

  [[nodiscard]] lerobot_tables read() {
    read_info();
    read_statistics();
    read_tasks();
    read_episodes();
    read_rows();
    return std::move(made_);
  }

 private:
  using json = nlohmann::json;
  struct file_of {
    std::uint64_t chunk = 0, file = 0;
    friend auto operator<=>(const file_of&, const file_of&) = default;
  };
  struct episode {
    std::uint64_t number = 0, from = 0, to = 0;
    file_of data;
    std::vector<std::pair<file_of, double>> films;
  };

  [[nodiscard]] json description(const std::string& path) {
    const buffer bytes = read_whole_file(path, max_description_bytes, "a description of a data set");
    mark_.add(text_of(bytes.view()));
    return in_file(path, [&] { return parse_description(text_of(bytes.view())); });
  }
  void read_info() {
    const std::string path = made_.info_path();
    const json info = description(path);
    in_json_file(path, "the description is none of LeRobot's: ", [&] {
      const auto version = info.at("codebase_version").get<std::string>();
      if (!version.starts_with("v3."))
        throw error(
            errc::format,
            {"the data set is of LeRobot's format ", version.substr(0, 20), ", and v3.0 is read here; ",
             version.starts_with("v2.1")
                 ? "convert it, with python -m lerobot.datasets.v30.convert_dataset_v21_to_v30"
                 : "convert it to v3.0 with lerobot"});
      made_.fps = info.at("fps").get<double>();
      if (!(made_.fps > 0 && made_.fps < 1e6)) throw error(errc::format, "\"fps\" is no rate of frames");
      frames_ = number_at<std::uint64_t>(info, "total_frames");
      data_form_ = info.at("data_path").get<std::string>();
      for (const auto& [name, said] : info.at("features").items())
        made_.features[name] = {said.at("dtype").get<std::string>(),
                                said.at("shape").get<std::vector<std::uint64_t>>()};
      for (const std::string_view camera : cameras_)
        if (const auto& dtype = made_.feature(camera).dtype; dtype != "video")
          throw error(errc::argument, {"the feature '", camera, "' is of the dtype ", dtype, ", and no film",
                                       dtype == "image" ? "; its pictures are a column: field<\"" +
                                                              std::string(camera) + ".bytes\", png>"
                                                        : std::string()});
      if (!cameras_.empty()) film_form_ = info.at("video_path").get<std::string>();
    });
  }
  void read_statistics() {
    const std::string path = made_.folder + "/meta/stats.json";
    struct stat there {};
    if (::stat(path.c_str(), &there) != 0) return;  // LeRobot does without, too
    const json all = description(path);
    in_json_file(path, "the statistics are none of LeRobot's: ", [&] {
      for (const auto& [name, said] : all.items()) {
        lerobot_statistics& one = made_.statistics[name];
        for (const auto& [key, to] : {std::pair{"mean", &one.mean}, std::pair{"std", &one.std},
                                      std::pair{"min", &one.min}, std::pair{"max", &one.max}})
          if (said.contains(key)) flatten(said[key], *to);
      }
    });
  }
  static void flatten(const json& value, std::vector<double>& to) {
    if (!value.is_array()) return to.push_back(value.is_boolean() ? value.get<bool>() : value.get<double>());
    for (const json& one : value) flatten(one, to);
  }

  /// Calls f(cells, row) for each row: `cells(i)` is the value of column i.
  template <class F>
  void each(parquet_source<mapped_file> source, const std::string& where, std::vector<std::string> columns,
            F&& f) {
    const auto some = in_file(where, [&] { return std::move(source) | column_list{std::move(columns)}; });
    mark_.add(some.fingerprint());
    std::uint64_t row = 0;
    each_value(as_plan(some), {},
               [&](const auto& values) { f([&](std::size_t i) { return values.member(i).cell(); }, row++); });
  }
  [[nodiscard]] static std::uint64_t whole(const arrow_cell& cell) {
    if (cell.is_null()) throw error(errc::format, "a number of the table is null");
    const arrow_whole found = whole_arrow_number(cell);
    if (found.negative) throw error(errc::format, "a number of the table is negative");
    return found.bits;
  }
  [[nodiscard]] static double real(const arrow_cell& cell) {
    const double found = cell.is_null() ? NAN : real_arrow_number(cell, 8);
    if (!std::isfinite(found)) throw error(errc::format, "a time of the table is not finite");
    return found;
  }

  void read_tasks() {
    const std::string path = made_.folder + "/meta/tasks.parquet";
    auto source = parquet(std::vector<std::string>{path});
    const auto fields = source.fields();
    const bool named =
        std::ranges::any_of(fields, [](const source_field& one) { return one.name == "task"; });
    // LeRobot takes the task by its row, whatever its number.
    each(std::move(source), path, {named ? "task" : "__index_level_0__"},
         [&](const auto& cells, std::uint64_t) { made_.tasks.emplace_back(text_of(cells(0).bytes())); });
  }
  void read_episodes() {
    const std::string path = made_.folder + "/meta/episodes";
    std::vector<std::string> columns{"episode_index",    "length",           "dataset_from_index",
                                     "dataset_to_index", "data/chunk_index", "data/file_index"};
    for (const std::string_view camera : cameras_)
      for (const std::string_view of : {"chunk_index", "file_index", "from_timestamp"})
        columns.push_back(text({"videos/", camera, "/", of}));
    std::vector<episode> all;
    std::uint64_t frames = 0;
    each(parquet(path), path, std::move(columns), [&](const auto& cells, std::uint64_t row) {
      episode one{whole(cells(0)), whole(cells(2)), whole(cells(3)), {whole(cells(4)), whole(cells(5))}, {}};
      if (one.number != row)
        throw error(errc::format,
                    {"row ", row, " is of episode ", one.number, ", and should be of episode ", row});
      if (one.from >= one.to || one.to - one.from != whole(cells(1)))
        throw error(errc::format, {"episode ", row, " has the rows ", one.from, " to ", one.to,
                                   ", and says that it has ", whole(cells(1))});
      if (one.to - one.from > frames_ - frames)
        throw error(errc::format, {"the episodes up to ", row, " have more frames together than the ",
                                   frames_, " of meta/info.json"});
      frames += one.to - one.from;
      for (std::size_t c = 0; c < cameras_.size(); ++c)
        one.films.push_back({{whole(cells(6 + 3 * c)), whole(cells(7 + 3 * c))}, real(cells(8 + 3 * c))});
      all.push_back(std::move(one));
    });
    if (frames != frames_)
      throw error(errc::format,
                  {"the episodes have ", frames, " frames together, and meta/info.json says ", frames_})
          .in_file(path);
    if (all.empty()) throw error(errc::missing, "the data set has no episodes").in_file(path);
    choose(std::move(all));
  }
  /// The episodes of all files with one that is asked for, in the order of their rows.
  void choose(std::vector<episode> all) {
    std::vector<bool> wanted(all.size(), wanted_.empty());
    for (const std::uint64_t number : wanted_) {
      if (number >= all.size())
        throw error(errc::argument, {"episode ", number, " is asked for, and the data set has ", all.size(),
                                     ", numbered from 0"})
            .in_file(made_.folder);
      wanted[to_size(number)] = true;
    }
    std::vector<file_of> data;
    for (const episode& one : all)
      if (wanted[to_size(one.number)]) data.push_back(one.data);
    std::ranges::sort(data);
    data.erase(std::ranges::unique(data).begin(), data.end());
    std::erase_if(all, [&](const episode& one) { return !std::ranges::binary_search(data, one.data); });
    std::ranges::sort(all, [](const episode& a, const episode& b) {
      return a.data != b.data ? a.data < b.data : a.from < b.from;
    });
    std::map<std::string, std::size_t> films;
    in_file(made_.info_path(), [&] {
      for (const file_of& one : data)
        made_.data_files.push_back(made_.folder + "/" + lerobot_path(data_form_, "", one.chunk, one.file));
      for (const episode& one : all) {
        if (wanted[to_size(one.number)]) made_.chosen.push_back(made_.numbers.size());
        made_.numbers.push_back(one.number);
        made_.first_index.push_back(one.from);
        made_.lengths.push_back(one.to - one.from);
        for (std::size_t c = 0; c < cameras_.size(); ++c) {
          const auto& [at, from] = one.films[c];
          const auto [place, fresh] = films.try_emplace(
              lerobot_path(film_form_, cameras_[c], at.chunk, at.file), made_.film_files.size());
          if (fresh) made_.film_files.push_back(made_.folder + "/" + place->first);
          made_.films.push_back({place->second, from});
        }
      }
    });
    for (const std::string& film : made_.film_files) {
      struct stat there {};
      if (::stat(film.c_str(), &there) != 0)
        throw error(errc::missing, "a film of the data set is not there").in_file(film);
      mark_.add(static_cast<std::uint64_t>(there.st_size));
    }
  }
  /// The times and the tasks of all rows, whose episodes must be what `meta/episodes` says.
  void read_rows() {
    const episodes known(made_.lengths);
    auto source = parquet(made_.data_files);
    if (source.size() != known.rows())
      throw error(errc::format, {"the files of data have ", source.size(), " rows, and their episodes in ",
                                 "meta/episodes ", known.rows()})
          .in_file(made_.data_files.front());
    made_.times.reserve(to_size(known.rows()));
    made_.task.reserve(to_size(known.rows()));
    std::size_t at = 0;
    each(std::move(source), made_.data_files.front(), {"episode_index", "timestamp", "task_index"},
         [&](const auto& cells, std::uint64_t row) {
           while (row >= known.starts()[at + 1]) ++at;
           if (whole(cells(0)) != made_.numbers[at])
             throw error(errc::format, {"the row is of episode ", whole(cells(0)),
                                        ", and by meta/episodes of episode ", made_.numbers[at]});
           const std::uint64_t task = whole(cells(2));
           if (task >= made_.tasks.size())
             throw error(errc::format,
                         {"the row is of task ", task, ", and meta/tasks.parquet has ", made_.tasks.size()});
           made_.times.push_back(static_cast<float>(real(cells(1))));
           made_.task.push_back(static_cast<std::uint32_t>(task));
         });
    made_.mark = mark_.value();
  }

  std::span<const std::string_view> cameras_;
  const std::vector<std::uint64_t>& wanted_;
  lerobot_tables made_;
  std::string data_form_, film_form_;
  std::uint64_t frames_ = 0;
  fingerprint mark_;
};

}  // namespace penstock::inline v0_1::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<parquet/arrow/reader.h>)
#error "penstock/source/delta.hpp needs Arrow C++ with Parquet: link penstock::arrow"
#endif
#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/delta.hpp needs nlohmann-json: link penstock::arrow"
#endif

#include <penstock/source/parquet.hpp>
#include <penstock/source/tables/delta_table.hpp>
#include <penstock/source/tables/parquet_input.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/file_names.hpp>

#include <nlohmann/json.hpp>

#include <sys/stat.h>

#include <filesystem>

namespace penstock::inline v0_1 {

namespace detail {

/// A value of a checkpoint as a commit would have it: structs, maps of texts, lists, texts, numbers, truth
/// values.
[[nodiscard]] inline nlohmann::json delta_value(const arrow_cell& cell) {
  using nlohmann::json;
  const arrow_type& type = cell.type();
  if (cell.is_null()) return nullptr;
  if (type.format == "u" || type.format == "U") return std::string(text_of(cell.bytes()));
  if (type.format == "i") return cell.number<std::int32_t>();
  if (type.format == "l") return cell.number<std::int64_t>();
  if (type.format == "b") return cell.bit();
  json made;
  if (type.format == "+s") {
    made = json::object();
    for (std::size_t i = 0; i < type.children.size(); ++i)
      made[type.children[i].name] = delta_value(cell.field(i));
  } else if (type.format == "+m") {
    made = json::object();
    for (const arrow_cell entry : cell.list())
      made[delta_value(entry.field(0)).get<std::string>()] = delta_value(entry.field(1));
  } else if (type.format == "+l") {
    made = json::array();
    for (const arrow_cell one : cell.list()) made.push_back(delta_value(one));
  }
  return made;  // null for statistics, and what is not read
}

/// The files of the log in a table's folder.
[[nodiscard]] inline std::vector<std::string> delta_log_files(const std::string& folder) {
  std::error_code failed;
  std::vector<std::string> made;
  std::filesystem::directory_iterator at(folder + "/_delta_log", failed);
  for (const std::filesystem::directory_iterator end; !failed && at != end; at.increment(failed))
    made.push_back(at->path().string());
  if (failed) made.clear();
  return made;
}

/// The folder of the table whose log has these files: of each, what is in front of "_delta_log/". Throws
/// errc::argument for files of two tables.
[[nodiscard]] inline std::string delta_folder(std::span<const std::string> names) {
  constexpr std::string_view log = "_delta_log/";
  std::optional<std::string> made;
  for (const std::string& name : names) {
    const std::size_t at = name.rfind(log);
    if (at == name.npos || (at != 0 && name[at - 1] != '/')) continue;
    std::string folder = name.substr(0, at == 0 ? 0 : at - 1);
    if (!made)
      made = std::move(folder);
    else if (*made != folder)
      throw error(errc::argument,
                  {"the storage has the logs of two tables, '", *made, "' and '", folder, "': name one"});
  }
  return made.value_or(names.empty() ? "the storage" : std::string(names.front()));
}

/// The log of a table.
class delta_log {
 public:
  /// `names`: of the files in the log; what else is among them is left out.
  delta_log(std::string folder, std::span<const std::string> names, table_objects objects)
      : folder_(std::move(folder)), objects_(std::move(objects)) {
    list(names);
  }

  /// What the table says of itself at a version, or at a time; the newest if both are none.
  [[nodiscard]] delta_state read(std::optional<std::uint64_t> version,
                                 std::optional<std::int64_t> timestamp) const {
    if (version && timestamp)
      throw error(errc::argument, "delta_options has a version or a timestamp, not both").in_file(folder_);
    if (timestamp) version = version_at(*timestamp);
    const std::uint64_t wanted = version ? *version : newest();
    std::uint64_t next = 0;
    delta_state state;
    for (const auto& [at, files] : checkpoints_)
      if (at <= wanted && files.complete()) next = at + 1;
    if (next != 0) read_checkpoint(state, checkpoints_.at(next - 1));
    std::vector<std::string> commits;
    for (; next <= wanted; ++next) {
      const auto found = commits_.find(next);
      if (found == commits_.end()) no_version(wanted);
      commits.push_back(found->second);
    }
    read_lines(commits, [&](std::size_t, const nlohmann::json& action) {
      state.apply(action);
      return true;
    });
    state.version = wanted;
    state.finish(folder_);
    return state;
  }

 private:
  struct checkpoint {
    std::map<std::size_t, std::vector<std::string>> written;  // by how many parts there should be
    /// The parts of one that is complete; none if none is.
    [[nodiscard]] std::span<const std::string> parts() const noexcept {
      for (const auto& [count, found] : written) {
        if (count == 1) return std::span(found).first(1);  // several have names of their own, and are alike
        if (count != 0 && count == found.size()) return found;
      }
      return {};
    }
    [[nodiscard]] bool complete() const noexcept { return !parts().empty(); }
  };

  void list(std::span<const std::string> names) {
    const std::string log = name_in_folder(folder_, "_delta_log/");
    for (const std::string& path : names) {
      if (!path.starts_with(log)) continue;
      const std::string_view name = std::string_view(path).substr(log.size());
      constexpr std::size_t digits = 20;
      std::uint64_t version = 0;
      const char* const behind = name.data() + std::min(digits, name.size());
      const auto [end_of_version, wrong] = std::from_chars(name.data(), behind, version);
      if (name.size() <= digits || name[digits] != '.' || end_of_version != behind || wrong != std::errc{})
        continue;
      const std::string_view rest = name.substr(digits + 1);
      if (rest == "json") {
        commits_[version] = path;
      } else if (rest.starts_with("checkpoint.") && (rest.ends_with(".parquet") || rest.ends_with(".json"))) {
        // In one file, in several that say how many they are, or under a name of its own.
        const auto dots = std::ranges::count(rest, '.');
        std::size_t count = 1;
        if (dots == 3)
          std::from_chars(rest.data() + rest.find('.', rest.find('.') + 1) + 1, rest.data() + rest.size(),
                          count);
        checkpoints_[version].written[count].push_back(path);
      }
    }
    if (commits_.empty() && checkpoints_.empty())
      throw error(errc::missing, "this is no table of Delta Lake: there is no log in its folder _delta_log")
          .in_file(folder_);
    for (auto& [version, one] : checkpoints_)
      for (auto& [count, parts] : one.written) std::ranges::sort(parts);
  }
  [[nodiscard]] std::uint64_t newest() const {
    std::uint64_t found = commits_.empty() ? 0 : commits_.rbegin()->first;
    for (const auto& [version, one] : checkpoints_)
      if (one.complete()) found = std::max(found, version);
    return found;
  }
  [[noreturn]] void no_version(std::uint64_t wanted) const {
    // Of all versions, those that follow a checkpoint without a gap, or the first commit.
    std::uint64_t first = 0;
    if (!commits_.contains(0))
      for (const auto& [version, one] : checkpoints_)
        if (one.complete()) {
          first = version;
          break;
        }
    throw error(errc::missing,
                {"the log does not have version ", wanted, ", or not all that it is made of; versions ",
                 first, " to ", newest(), " may be there"})
        .in_file(folder_);
  }
  [[nodiscard]] std::uint64_t version_at(std::int64_t timestamp) const {
    std::optional<std::uint64_t> found;
    std::vector<std::string> paths;
    std::vector<std::uint64_t> versions;
    for (const auto& [version, path] : commits_) {
      paths.push_back(path);
      versions.push_back(version);
    }
    std::vector<std::int64_t> written(paths.size());
    std::size_t at = 0;
    const auto passes = [&](std::size_t commit) {  // all commits before are complete
      for (; at < commit; ++at) {
        if (written[at] == 0) written[at] = time_of_file(paths[at]);
        if (written[at] > timestamp) return false;
        found = versions[at];
      }
      return true;
    };
    const bool all = read_lines(paths, [&](std::size_t commit, const nlohmann::json& action) {
      if (!passes(commit)) return false;
      if (!action.contains("commitInfo")) return true;
      const nlohmann::json& info = action["commitInfo"];
      for (const char* name : {"timestamp", "inCommitTimestamp"})
        if (info.is_object() && info.contains(name) && info[name].is_number_integer())
          written[commit] = number_at<std::int64_t>(info, name);
      return true;
    });
    if (all) (void)passes(paths.size());
    if (!found)
      throw error(errc::missing, {"the log has no version that was there ", timestamp, " ms after 1970"})
          .in_file(folder_);
    return *found;
  }
  [[nodiscard]] std::int64_t time_of_file(const std::string& path) const {
    if (!objects_.local())
      throw error(errc::argument, "the commit does not say when it was made; name a version").in_file(path);
    struct stat facts {};
    return ::stat(path.c_str(), &facts) != 0 ? 0 : std::int64_t{facts.st_mtime} * 1000;
  }

  // Calls `work(i, action)` for all lines of files, in their order, until it returns false; returns whether
  // it never did.
  template <class Work>
  bool read_lines(const std::vector<std::string>& paths, Work&& work) const {
    return objects_.read_in_order(paths, max_bytes, [&](std::size_t i, bytes_view bytes) {
      return delta_lines(paths[i], text_of(bytes),
                         [&](const nlohmann::json& action) { return work(i, action); });
    });
  }
  void read_checkpoint(delta_state& state, const checkpoint& from) const {
    const std::span<const std::string> parts = from.parts();
    if (parts.front().ends_with(".json"))
      read_lines({parts.begin(), parts.end()}, [&](std::size_t, const nlohmann::json& action) {
        state.apply(action);
        return true;
      });
    else
      read_rows(state, {parts.begin(), parts.end()});
    std::vector<std::string> sidecars = std::exchange(state.sidecars, {});
    for (std::string& name : sidecars)
      name = name.find('/') == name.npos ? name_in_folder(folder_, "_delta_log/_sidecars/" + hive_text(name))
                                         : delta_path(folder_, name);
    read_rows(state, sidecars);
  }
  // Statistics are most of a checkpoint, and are not used.
  [[nodiscard]] static std::vector<int> columns_of(const parquet::SchemaDescriptor& schema) {
    std::vector<int> made;
    for (int i = 0; i < schema.num_columns(); ++i) {
      const std::vector<std::string> path = schema.Column(i)->path()->ToDotVector();
      constexpr std::array unused{"stats", "stats_parsed", "partitionValues_parsed", "tags"};
      const bool needed =
          path.size() < 2 || std::ranges::none_of(unused, [&](const char* one) { return path[1] == one; });
      if (delta_state::knows(path.front()) && needed) made.push_back(i);
    }
    return made;
  }
  // Files of checkpoints, of which some are read at once. They are applied one after another: an action may
  // be that of a file before.
  void read_rows(delta_state& state, const std::vector<std::string>& paths) const {
    if (paths.empty()) return;
    constexpr std::size_t max_in_flight = table_objects::max_in_flight;
    objects_.open(paths, [&](session_view session) {
      std::vector<std::uint64_t> sizes(paths.size());
      for_each_in_parallel(paths.size(), max_in_flight,
                           [&](std::size_t i) { sizes[i] = session.size(static_cast<object_id>(i)); });
      for (std::size_t first = 0; first < paths.size();) {
        const auto left = std::span<const std::uint64_t>(sizes).subspan(first);
        const std::size_t count =
            table_objects::fitting(left.first(std::min(max_in_flight, left.size())), table_objects::max_held);
        std::vector<batches> tables(count);
        for_each_in_parallel(count, count, [&](std::size_t i) {
          guarded(paths[first + i], [&] { tables[i] = rows_of(session, static_cast<object_id>(first + i)); });
        });
        for (std::size_t i = 0; i < count; ++i) {
          guarded(paths[first + i], [&] { apply(state, tables[i]); });
          tables[i].clear();
        }
        first += count;
      }
    });
  }
  using batches = std::vector<shared<const imported_batch>>;
  template <class Work>
  static void guarded(const std::string& path, Work&& work) {
    in_json_file(path, "the checkpoint is not as Delta writes it: ", work);
  }
  [[nodiscard]] static batches rows_of(session_view session, object_id object) {
    batches made;
    read_parquet_batches(
        session, object,
        [](const parquet::SchemaDescriptor& schema, const auto&) { return columns_of(schema); },
        [&](shared<const imported_batch> one) { made.push_back(std::move(one)); });
    return made;
  }
  static void apply(delta_state& state, const batches& rows) {
    const std::size_t columns = rows.empty() ? 0 : rows.front()->root.children.size();
    for (std::size_t column = 0; column < columns; ++column)
      for (const shared<const imported_batch>& batch : rows)
        for (std::uint64_t row = 0; row < batch->root.length; ++row) {
          const arrow_column& values = batch->root.children[column];
          if (!values.null_at(row)) state.apply({{values.type->name, delta_value(arrow_cell(values, row))}});
        }
  }

  static constexpr std::uint64_t max_bytes = 1_GiB;

  std::string folder_;
  table_objects objects_;
  std::map<std::uint64_t, std::string> commits_;
  std::map<std::uint64_t, checkpoint> checkpoints_;
};

/// `names`: of the files in the log of the table in a folder.
[[nodiscard]] inline table_snapshot read_delta(const std::string& folder, std::span<const std::string> names,
                                               const table_objects& objects,
                                               std::optional<std::uint64_t> version,
                                               std::optional<std::int64_t> timestamp) {
  const delta_state state = delta_log(folder, names, objects).read(version, timestamp);
  return {state.paths(folder), state.facts(folder, objects)};
}

}  // namespace detail

/// Options of `delta`: which version of the table, and how its files are read. At most one of the first two.
struct delta_options {
  std::optional<std::uint64_t> version = {};   ///< none: the newest
  std::optional<std::int64_t> timestamp = {};  ///< the version at that time, in milliseconds since 1970
  parquet_options files = {};
};

/// Tables of Delta Lake.
///
///     auto rows = delta("sales", {.version = 3}) | where<"year">(equals(2025)) | shuffle(seed(7)) |
///                 decode<field<"amount", arrow_value<double>>>;
///
/// In: the table's folder in the local file system; or a storage that has the files of the table's log, among
/// others or alone, such as `s3(s3::list("bucket/sales/_delta_log/"))`: the table's other files are opened by
/// their names, with the storage's options.
/// Out: the source `parquet` of the files of one version, in the order of their paths, without rows that
/// deletion vectors name. Partition columns are columns; a column that was added later is null in older
/// files. With column mapping, columns and fields of structs have their logical names; by `id`, columns are
/// found by their numbers where files have some, and fields by name. Columns that were widened have the
/// table's type and exact values. Timestamps are microseconds, those that are INT96 in files, too.
/// Kind: as `parquet`. The plan names the version; its fingerprint is that of the table's id, the version and
/// its files, so that a table that has grown is another dataset unless the version is named.
/// Making the plan reads the log from its last checkpoint on, 16 files at once, and what `parquet` reads;
/// files of the log in memory have at most 256 MiB together, or are a single one, of at most 1 GiB; that is
/// as they are stored, and the rows of a checkpoint may take several times as much while it is read. A
/// version's time is what its commit says of itself, as Spark's `inCommitTimestamp`, or else `timestamp`, or
/// else, of a local file, that of the file.
/// Errors: errc::missing for what is no table, and for a version that is not in the log any more, with those
/// that are; errc::format, with the file, for a log or a deletion vector that is damaged, and for a column
/// whose type in a file does not become the table's by widening; errc::checksum for a deletion vector
/// whose checksum is not its own; errc::limit for one of more than 2^27 rows; errc::argument for reader
/// features that are not known, with their names, for files in another file system, and for the logs of two
/// tables; what `parquet` throws, and the storage.
/// Threads: as `parquet`.
/// Source: Delta Lake, PROTOCOL.md.
[[nodiscard]] inline parquet_source<mapped_file> delta(const std::string& path,
                                                       const delta_options& options = {}) {
  const std::string folder = detail::files::local_path(detail::name_of_uri(path));
  const detail::table_objects objects{file(std::vector<std::string>())};
  detail::table_snapshot found = detail::read_delta(folder, detail::delta_log_files(folder), objects,
                                                    options.version, options.timestamp);
  return {mapped_file(std::move(found.paths)), options.files, &found.table};
}
template <renaming_storage Storage>
[[nodiscard]] parquet_source<Storage> delta(const Storage& log, const delta_options& options = {}) {
  detail::table_snapshot found =
      detail::read_delta(detail::delta_folder(log.names()), log.names(), detail::table_objects(log),
                         options.version, options.timestamp);
  return {log.with_names(std::move(found.paths)), options.files, &found.table};
}

/// Tables of Delta Lake for `dataset`, recognised by their log, in the table's folder or in a storage, which
/// may have the table's other files, too.
struct delta_format {
  static constexpr std::string_view name = "delta";

  delta_options options = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return there.has_folder("_delta_log") ? format_fit::description : format_fit::none;
  }
  [[nodiscard]] std::variant<parquet_source<mapped_file>> open(const dataset_listing& there) const {
    return delta(there.path(), options);
  }
  template <renaming_storage Storage>
  [[nodiscard]] std::variant<parquet_source<Storage>> open_in(const Storage& where,
                                                              const dataset_listing&) const {
    return delta(where, options);
  }
};

}  // namespace penstock::inline v0_1

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The program that `inspect` and `inspect_tables` are, for the formats that each includes.

#include "arguments.hpp"
#include "contact_sheet.hpp"
#include "inspect_cells.hpp"
#include "inspect_codecs.hpp"
#include "inspect_features.hpp"
#include "inspect_parts.hpp"  // made by CMake: what the enabled components read
#include "inspect_report.hpp"
#include "temporary_folder.hpp"

#include <penstock/image.hpp>
#include <penstock/penstock.hpp>
#include <penstock/source/dataset.hpp>
#include <penstock/source/litdata.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

namespace inspection {

struct request {
  std::string path, column, sheet, part;
  std::size_t rows = 3;
  std::uint32_t columns = 8, size = 96;
  bool json = false;
};

/// The type that reads values of two types, of JSON or of features; "mixed" if none does.
inline std::string common_type(const std::string& a, const std::string& b) {
  if (a == b || "std::vector<" + b + ">" == a) return a;
  if ("std::vector<" + a + ">" == b) return b;
  const auto number = [](const std::string& type) { return type == "std::int64_t" || type == "double"; };
  return number(a) && number(b) ? "double" : "mixed";
}

/// Which fields there are, by what the source says and by the rows that were looked at.
inline void add_row(report& into, const std::vector<cell>& row) {
  for (const cell& one : row) {
    auto found = std::find_if(into.fields.begin(), into.fields.end(),
                              [&](const field_report& known) { return known.name == one.name; });
    if (found == into.fields.end()) {
      into.fields.push_back({one.name, one.type, {}, 0, 0, false, {}, {}, {}});
      found = into.fields.end() - 1;
    }
    if (into.format == "lines" || into.format == "tfrecord") found->type = common_type(found->type, one.type);
    ++found->seen;
    found->nulls += one.null ? 1 : 0;
    found->nulls_inside = found->nulls_inside || one.null_inside;
    if (!one.kind.empty()) found->kinds.insert(one.kind);
  }
}

/// The path as a pattern for a source: of files in a folder, with a star for each number.
inline std::string pattern_of(const ps::dataset_listing& there, const std::vector<std::string>& paths) {
  if (!there.is_folder() || paths.empty()) return there.path();
  if (paths.size() == 1) return paths.front();
  if (paths.front().rfind('/') != there.path().size()) return there.path();  // of a folder within
  std::string name;
  for (const char c : paths.front().substr(paths.front().rfind('/') + 1))
    if (c < '0' || c > '9')
      name += c;
    else if (!name.ends_with('*'))
      name += '*';
  return there.path() + "/" + name;
}

/// How sources are called, in the expression that reads one.
class source_call {
 public:
  source_call(report& into, const ps::dataset_listing& there, const request& asked)
      : into_(into), there_(there), asked_(asked) {}

  template <class Source>
  [[nodiscard]] std::string of(const Source& source) const {
    const std::string& format = into_.format;
    const std::vector<std::string> paths = files_of(source);
    if (format == "directory") return call("directory", "directory", literal(there_.path())) + images() + ")";
    if (format == "litdata_rows")
      return call("litdata", format + unpackers(packed_batches(ps::litdata_rows(there_.path()))),
                  literal(there_.path())) +
             ")";
    if (format == "mds" || format == "litdata")
      return call(format, format + unpackers(packed(paths)), literal(there_.path())) + ")";
    if (format == "delta" || format == "iceberg" || (format == "parquet" && there_.is_folder()))
      return call(format, format, literal(there_.path())) + ")";
    if (format == "energon")
      return call(format, format, literal(there_.path())) + ", " + literal(asked_.part) + ")";
    if constexpr (requires { source.tokens(); }) return tokens<typename Source::element::value_type>(paths);
    if (format == "idx" || format == "idx_gz" || format == "npy_rows" || format == "npz_rows" ||
        format == "safetensors_rows")
      return numbers(source, paths);
    if (format == "arrow_ipc")
      return call(format, format + unpackers(packed_batches(ps::arrow_ipc(ps::mapped_file(paths)))),
                  place("mapped_file", paths)) +
             ")";
    if (const std::string how = unpackers(packed(paths)); format == "webdataset" && !how.empty()) {
      into_.headers.insert("penstock/source/unpacked.hpp");
      return call(format, format, "ps::unpacked" + how + "(" + place("", paths)) + "))";
    }
    const bool mapped = format == "parquet" || format == "lines";
    return call(format, format, place(mapped ? "mapped_file" : "file", paths)) + ")";
  }

 private:
  /// The unpackers of these compressions, as template arguments.
  std::string unpackers(const std::set<std::string>& compressions) const {
    std::string list;
    for (const std::string& one : compressions) {
      into_.headers.insert("penstock/codec/unpack_" + one + ".hpp");
      list.append(list.empty() ? "" : ", ").append("ps::unpack_").append(one);
    }
    return list.empty() ? list : "<" + list + ">";
  }
  /// How files are compressed, by their first bytes.
  [[nodiscard]] std::set<std::string> packed(const std::vector<std::string>& paths) const {
    std::set<std::string> found;
    const bool indexed = into_.format == "mds" || into_.format == "litdata";
    for (const ps::listed_files& some : there_.files()) {
      if (!indexed && std::find(paths.begin(), paths.end(), some.paths.front()) == paths.end()) continue;
      if (some.begins("\x1f\x8b")) found.insert("gzip");
      if (some.begins("\x28\xb5\x2f\xfd") || some.begins("LDFZ01")) found.insert("zstd");
      if (some.begins("\x04\x22\x4d\x18")) found.insert("lz4");
      if (some.begins("BZh")) found.insert("bzip2");
      // These two have no signature.
      if (some.ending.ends_with(".br")) found.insert("brotli");
      if (some.ending.ends_with(".snappy")) found.insert("snappy");
    }
    return found;
  }
  /// How batches within Arrow files are compressed, by what is said when one is read.
  [[nodiscard]] static std::set<std::string> packed_batches(
      const ps::arrow_ipc_source<ps::mapped_file>& source) {
    const auto reader = source.connect();
    typename std::remove_const_t<decltype(reader)>::worker worker;
    try {
      if (source.size() != 0) reader.evaluate({0, 0}, worker, ps::any_sink{});
    } catch (const ps::error& e) {
      const std::string said = e.what();
      for (const char* const one : {"lz4", "zstd"})
        if (said.find(std::string("unpack_") + one) != said.npos) return {one};
    }
    return {};
  }
  std::string call(std::string_view header, std::string_view function, const std::string& first) const {
    into_.headers.insert("penstock/source/" + std::string(header) + ".hpp");
    return "ps::" + std::string(function) + "(" + first;
  }
  static std::string images() {
    return ", {.extensions = {\"jpg\", \"jpeg\", \"png\", \"webp\", \"gif\", \"avif\", \"tif\", \"tiff\"}}";
  }

  /// The source's files: those that it names, or, if it reads copies, those that are called as its files are.
  template <class Source>
  [[nodiscard]] std::vector<std::string> files_of(const Source& source) const {
    std::set<std::string_view> listed;
    std::vector<std::string> named, called, maximum;
    for (const ps::listed_files& some : there_.files()) {
      listed.insert(some.paths.begin(), some.paths.end());
      if (some.paths.size() > maximum.size()) maximum = some.paths;
      if (some.ending.starts_with(".tar") || some.ending == ".tgz") called = some.paths;
    }
    if constexpr (requires { source.manifest(); })
      for (const auto& shard : source.manifest().shards())
        if (named.empty() || named.back() != shard.name) named.push_back(shard.name);
    const auto is_listed = [&](const std::string& one) { return listed.contains(one); };
    if (!named.empty() && std::all_of(named.begin(), named.end(), is_listed)) return named;
    return into_.format == "webdataset" && !called.empty() ? called : maximum;
  }
  /// The files as a pattern, if it matches them and no others, or otherwise as a storage of a list.
  [[nodiscard]] std::string place(std::string_view storage, const std::vector<std::string>& paths) const {
    const std::string pattern = pattern_of(there_, paths);
    const bool given = !there_.is_folder() && !std::filesystem::exists(pattern);
    if (given || matches(pattern, paths)) return literal(pattern);
    return storage.empty() ? list_of(paths) : stored(storage, paths);
  }
  [[nodiscard]] static bool matches(const std::string& pattern, const std::vector<std::string>& paths) {
    if (pattern.find("::") != pattern.npos) return false;
    try {
      return ps::file_names(pattern) == paths;
    } catch (const ps::error&) {
      return false;
    }
  }
  [[nodiscard]] static std::string list_of(const std::vector<std::string>& paths) {
    std::string list;
    for (const std::string& one : paths) list.append(list.empty() ? "{" : ", ").append(literal(one));
    return list + "}";
  }
  std::string stored(std::string_view storage, const std::vector<std::string>& paths) const {
    into_.headers.insert("penstock/storage/" + std::string(storage) + ".hpp");
    return "ps::" + std::string(storage) + "(" + list_of(paths) + ")";
  }
  template <class T>
  [[nodiscard]] std::string tokens(const std::vector<std::string>& paths) const {
    const bool megatron = into_.described.starts_with("megatron");
    std::string path = megatron ? "" : place("mapped_file", paths);
    if (megatron) {
      std::vector<std::string> fronts, pairs;
      for (const std::string& one : paths) {
        const std::string front = one.substr(0, one.rfind('.'));
        if (!fronts.empty() && fronts.back() == front) continue;
        fronts.push_back(front);
        for (const char* const ending : {".bin", ".idx"}) pairs.push_back(front + ending);
      }
      const bool named = fronts.size() == 1 && matches(fronts.front(), fronts);
      path = named ? literal(fronts.front()) : stored("mapped_file", pairs);
    }
    const std::string function =
        std::string(megatron ? "megatron" : "llmc") + "_tokens<" + std::string(name_of_type<T>()) + ">";
    return call("tokens", function, path) + ", ps::token_windows{.length = 1024})";
  }
  template <class Source>
  [[nodiscard]] std::string numbers(const Source& source, const std::vector<std::string>& paths) const {
    const std::string& format = into_.format;
    const std::string header = format == "safetensors_rows" ? "safetensors" : format;
    if constexpr (requires { typename Source::element::value_type; }) {
      const std::string function =
          format + "<" + std::string(name_of_type<typename Source::element::value_type>()) + ">";
      const bool one = format == "idx" || format == "idx_gz";  // a path, and no pattern
      std::string made = call(header, function, one ? literal(paths.front()) : place("mapped_file", paths));
      if constexpr (requires { source.array(); }) made += ", " + literal(source.array());
      return made + ")";
    }
    return {};
  }

  report& into_;
  const ps::dataset_listing& there_;
  const request& asked_;
};

/// Chooses a codec for each field, and writes the expression.
inline void spell(report& all, const std::string& source) {
  std::string list;
  const auto leave_out = [](field_report& one, std::string_view why) { one.note = why; };
  const auto add = [&](field_report& one, codec_choice chosen) {
    one.codec = std::move(chosen.spelled);
    one.header = std::move(chosen.header);
    if (one.codec.empty()) return leave_out(one, "no codec of the library reads it");
    if (one.seen != all.looked_at && all.looked_at != 0) {
      one.codec.clear();
      return leave_out(one, "not in every row");
    }
    all.headers.insert(one.header);
    list.append(list.empty() ? "" : ",\n               ")
        .append("ps::field<")
        .append(literal(one.name))
        .append(", ");
    list.append(one.codec).append(">");
  };
  const std::string& format = all.format;
  all.headers.insert("penstock/penstock.hpp");
  all.expression = "auto samples = " + source;
  std::string after;
  if (format == "tfrecord") {
    std::string features;
    for (field_report& one : all.fields) {
      if (one.name.empty()) continue;
      const bool known = !one.type.empty() && one.type != "mixed";
      if (!known || one.seen != all.looked_at) {
        leave_out(one, known              ? "not in every row"
                       : one.type.empty() ? "several values of bytes"
                                          : "of several types");
        continue;
      }
      features.append(features.empty() ? "" : ",\n               ")
          .append("ps::feature<")
          .append(literal(one.name))
          .append(", ");
      features.append(one.type).append(">");
      if (one.type == "ps::bytes") add(one, codec_of_kinds(one.kinds));
    }
    if (!features.empty()) {
      all.headers.insert("penstock/codec/tf_example.hpp");
      all.expression += " |\n    ps::decode<ps::tf_example<" + features + ">>";
    } else {
      all.headers.insert("penstock/codec/identity.hpp");
      after = "ps::identity";
    }
  } else if (format == "directory") {
    for (field_report& one : all.fields)
      if (one.name == "bytes") add(one, codec_of_kinds(one.kinds));
  } else if (format == "lines") {
    std::vector<std::string> read;
    for (field_report& one : all.fields) {
      if (one.name.empty()) continue;
      if (one.type == "mixed")
        leave_out(one, "of several types");
      else if (one.codec.empty())
        leave_out(one, "no json_field reads it; decode<json> has it");
      else if (one.seen != all.looked_at)
        leave_out(one, "not in every row");
      else
        read.push_back(one.codec);
      if (!one.note.empty()) one.codec.clear();
    }
    for (const std::string& one : read) after.append(after.empty() ? "" : ",\n               ").append(one);
    if (read.size() > 1) after = "ps::json_fields<" + after + ">";
    if (!read.empty()) all.headers.insert("penstock/codec/json_field.hpp");
    if (after.empty() && all.fields.size() == 1 && all.fields[0].type == "json") {
      all.headers.insert("penstock/codec/json.hpp");
      after = "ps::json";
    }
  } else {
    for (field_report& one : all.fields) {
      if (one.name.empty()) continue;
      if (format == "mds")
        add(one, codec_of_mds(one.type, one.kinds));
      else if (format == "litdata")
        add(one, codec_of_litdata(one.type, one.kinds));
      else if (format == "ffcv")
        add(one, codec_of_ffcv(one.type, one.kinds));
      else if (format == "arrow_ipc" || format == "litdata_rows" || format == "parquet" ||
               format == "delta" || format == "iceberg")
        add(one, codec_of_arrow(one.type, one.kinds, one.nulls != 0, one.nulls_inside));
      else
        add(one, codec_of_kinds(one.kinds));
    }
  }
  if (!list.empty()) after = list;
  for (const std::string_view codec : picture_kinds)
    if (list.find("ps::" + std::string(codec)) != list.npos)
      all.headers.insert("penstock/codec/" + std::string(codec) + ".hpp");
  if (!after.empty()) all.expression += " |\n    ps::decode<" + after + ">";
  all.expression += ";";
  const bool unreadable = std::all_of(all.fields.begin(), all.fields.end(),
                                      [](const field_report& one) { return !one.note.empty(); });
  if (unreadable && !all.fields.empty()) all.expression += "  // no codec reads any of its fields";
}

/// A value of JSON as text. Writing it takes a stack for each level, so that what is nested deeply is not.
inline std::string json_text(const nlohmann::json& value) {
  if (value.is_string()) return safe_text(value.get_ref<const std::string&>());
  const auto is_deep = [](const auto& self, const nlohmann::json& one, int levels) -> bool {
    return one.is_structured() && (levels == 0 || std::any_of(one.begin(), one.end(), [&](const auto& inner) {
                                     return self(self, inner, levels - 1);
                                   }));
  };
  if (is_deep(is_deep, value, 64)) return "nested deeply";
  const std::string text = safe_text(value.dump());
  const std::size_t end = text.rfind('"');  // quotes are for texts
  return text.substr(1, end - 1) + text.substr(end + 1);
}

/// The keys of a line that is a JSON object, as cells whose types are those of `json_field`.
inline std::vector<cell> keys_of(std::string_view line) {
  const nlohmann::json parsed = nlohmann::json::parse(line, nullptr, false);
  std::vector<cell> made;
  if (!parsed.is_object()) return made;
  for (const auto& [key, value] : parsed.items()) {
    cell& one = made.emplace_back(cell{key});
    constexpr auto maximum = std::uint64_t(std::numeric_limits<std::int64_t>::max());
    const bool large = value.is_number_unsigned() && value.get<std::uint64_t>() > maximum;
    one.type = large                       ? "number beyond std::int64_t"
               : value.is_string()         ? "std::string"
               : value.is_boolean()        ? "bool"
               : value.is_number_integer() ? "std::int64_t"
               : value.is_number()         ? "double"
                                           : value.type_name();
    one.text = json_text(value);
  }
  return made;
}

/// A sheet of the pictures, with their numbers below them. The place of one that is damaged or too large
/// stays empty; returns how many there are, and what is wrong with the first.
inline std::string draw(const std::vector<std::string>& pictures, const request& asked) {
  using picture = parts::picture;
  const std::size_t count = pictures.size();
  const auto across = std::min<std::uint32_t>(asked.columns, static_cast<std::uint32_t>(count));
  const auto down = (static_cast<std::uint32_t>(count) + across - 1) / across;
  constexpr std::uint32_t gap = contact_sheet::gap;
  const std::uint32_t width = asked.size + gap, height = asked.size + contact_sheet::label_height + gap;
  contact_sheet paper({across * width + gap, down * height + gap});
  std::size_t damaged = 0;
  std::string why;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t x = gap + i % across * width, y = gap + i / across * height;
    paper.put(x, y + asked.size, asked.size, std::to_string(i));
    try {
      const std::vector<std::string> only{pictures[i]};
      for (auto&& one : ps::from(only) | ps::decode<picture> |
                            ps::map(ps::resize(asked.size), ps::center_crop(asked.size)) | ps::batch(1))
        paper.put(x, y, one.values()[0]);
    } catch (const ps::error& e) {
      if (damaged++ == 0) why = "picture " + std::to_string(i) + ": " + e.what();
    }
  }
  paper.save(asked.sheet);
  return damaged == 0 ? "" : count_text(damaged, "picture") + " cannot be drawn; " + why;
}

/// Reads rows of a source: enough to know its fields, and as many pictures as the sheet has room for.
template <class Source>
report look(const Source& source, report all, const ps::dataset_listing& there, const request& asked) {
  all.described = source.describe();
  all.samples = source.size();
  if constexpr (std::same_as<Source, ps::arrow_ipc_source<ps::mapped_file>>)
    if (all.format == "litdata") all.format = "litdata_rows";
  std::vector<ps::source_field> types;
  if constexpr (ps::described_source<Source>) {
    types = source.fields();
    for (const ps::source_field& one : types)
      if (std::none_of(all.fields.begin(), all.fields.end(),
                       [&](const field_report& known) { return known.name == one.name; }))
        all.fields.push_back({one.name, one.type, {}, 0, 0, false, {}, {}, {}});
  }
  if constexpr (requires { source.manifest(); }) {
    all.shards = source.manifest().shards().size();
    all.bytes = source.manifest().bytes();
  }
  const auto reader = ps::connect_source(source);
  if constexpr (requires { reader.bytes_per_sample(); })
    if (!all.bytes) all.bytes = all.samples * reader.bytes_per_sample();
  typename Source::reader::worker worker;
  const std::size_t max_pictures = asked.sheet.empty() ? 0 : std::size_t{asked.columns} * asked.columns;
  const std::uint64_t maximum =
      std::min<std::uint64_t>(all.samples, std::max({asked.rows, std::size_t{32}, max_pictures}));
  std::vector<std::string> pictures;
  for (std::uint64_t i = 0; i < maximum && all.failure.empty(); ++i) {
    try {
      reader.evaluate({0, i}, worker, [&](const auto& sample) {
        std::vector<cell> row;
        if (all.format == "tfrecord" || all.format == "lines") {
          if constexpr (ps::blob<decltype(sample)>) row = features_of(ps::text_of(sample.finish()));
          if constexpr (std::convertible_to<decltype(sample), std::string_view>) row = keys_of(sample);
        }
        if (row.empty()) row = cells_of(sample, types);
        add_row(all, row);
        for (cell& one : row)
          if (pictures.size() < max_pictures && !one.image.empty() &&
              (asked.column.empty() || asked.column == one.name || one.name.empty())) {
            pictures.push_back(std::move(one.image));
            break;
          }
        if (i < asked.rows) all.rows.push_back(std::move(row));
        ++all.looked_at;
      });
    } catch (const ps::error& e) {
      all.failure = e.what();
    }
  }
  if (all.format == "lines")
    for (field_report& one : all.fields)
      if (one.type.starts_with("std::") || one.type == "bool" || one.type == "double")
        one.codec = "ps::json_field<" + literal(one.name) + ", " + one.type + ">";
  spell(all, source_call(all, there, asked).of(source));
  if (!asked.sheet.empty()) {
    if (pictures.empty())
      throw std::runtime_error("no column" + (asked.column.empty() ? "" : " '" + asked.column + "'") +
                               " of images was found for --sheet in the first " +
                               std::to_string(all.looked_at) + " rows");
    all.undrawn = draw(pictures, asked);
  }
  return all;
}

/// What there is of the formats that need Arrow C++; empty if there is nothing.
inline std::string table_in(const ps::dataset_listing& there) {
  std::error_code ignored;
  const std::filesystem::path folder(there.path());
  if (there.is_folder() && std::filesystem::is_directory(folder / "_delta_log", ignored))
    return "a table of Delta Lake";
  if (there.is_folder() && std::filesystem::is_directory(folder / "metadata", ignored) &&
      std::filesystem::is_directory(folder / "data", ignored))
    return "a table of Iceberg";
  for (const ps::listed_files& some : there.files())
    if (some.begins("PAR1")) return some.paths.size() == 1 ? "a Parquet file" : "a set of Parquet files";
  return {};
}

template <class... More>
report inspect(request asked, const More&... more) {
  const ps::dataset_listing there(asked.path);
  const temporary_folder unpacked("inspect");  // a look leaves nothing behind
  const ps::unpacked_options copies{.folder = unpacked.path()};
  const auto each = [&](auto&& use) {
    constexpr ps::index_policy in_memory = ps::index_policy::transient;
    const auto optional = parts::formats(asked.column, asked.part, copies, in_memory);
    return std::apply(
        [&](const auto&... parts) {
          return use(
              ps::core_formats{}, parts...,
              ps::npy_rows_format<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                                  std::uint16_t, std::uint32_t, std::uint64_t, float, double>{},
              ps::idx_format<std::uint8_t, std::int8_t, std::int16_t, std::int32_t, float, double>{},
              more...);
        },
        optional);
  };
  if constexpr (sizeof...(More) == 0)
    if (const std::string table = table_in(there); !table.empty())
      throw std::runtime_error("this is " + table + ", which inspect_tables reads: inspect_tables " +
                               asked.path +
                               "; it is built beside this program where Arrow C++ is there "
                               "(-DPENSTOCK_ENABLE_ARROW=ON)");
  report all;
  all.path = asked.path;
  all.format = each([&](const auto&... formats) { return std::string(ps::format_of(there, formats...)); });
  const auto found = each([&](const auto&... formats) { return ps::dataset(there, formats...); });
  return std::visit([&](const auto& source) { return look(source, all, there, asked); }, found);
}

template <class... More>
int run(std::string_view program, int argc, char** argv, const More&... more) {
  const std::string usage =
      std::string(program) +
      " PATH [--rows 3] [--sheet FILE.png] [--column NAME] [--columns 8] [--size 96] [--part train] [--as "
      "text]\n"
      "  PATH       a folder, a file, or a pattern such as \"train-{0000..0127}.tar\"\n"
      "  --sheet    draws the pictures of a column, as many as --columns squared\n"
      "  --column   the column of the sheet; of npz and safetensors files, which array to read\n"
      "  --part     of a dataset of Energon\n"
      "  --as       text or json";
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--help") {
      std::printf("usage: %s\n", usage.c_str());
      return 0;
    }
  request asked;
  try {
    const bool has_path = argc > 1 && !std::string_view(argv[1]).starts_with("--");
    arguments given(has_path ? argc - 1 : argc, has_path ? argv + 1 : argv, usage);
    asked.rows = given.number("rows", 3, 1000);
    asked.sheet = given.text("sheet", "");
    asked.column = given.text("column", "");
    asked.columns = static_cast<std::uint32_t>(given.number("columns", 8, 64));
    asked.size = static_cast<std::uint32_t>(given.number("size", 96, 512));
    asked.part = given.text("part", "train");
    const std::string as = given.text("as", "text");
    given.done();
    if (!has_path) throw std::runtime_error("a path is missing; usage: " + usage.substr(0, usage.find('\n')));
    if (as != "text" && as != "json") throw std::runtime_error("--as is text or json, and not '" + as + "'");
    if (asked.columns == 0 || asked.size < 16)
      throw std::runtime_error("--columns is at least 1, and --size at least 16");
    asked.json = as == "json";
    asked.path = argv[1];
    while (asked.path.size() > 1 && asked.path.ends_with('/')) asked.path.pop_back();
    const report all = inspect(asked, more...);
    asked.json ? print_json(all) : print_text(all);
    return all.failure.empty() && all.undrawn.empty() ? 0 : 1;
  } catch (const std::exception& e) {
    std::error_code ignored;
    const bool is_there = asked.path.empty() || std::filesystem::exists(asked.path, ignored);
    std::fprintf(stderr, "%s: %s%s\n", program.data(), safe_message(e.what()).c_str(),
                 is_there ? "" : ("; usage: " + usage.substr(0, usage.find('\n'))).c_str());
    return 1;
  }
}

}  // namespace inspection

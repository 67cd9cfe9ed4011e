// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Which codec reads a field, as C++ that `ps` is the namespace for.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace inspection {

/// Kinds of bytes that are images, called as their codecs are.
constexpr std::string_view picture_kinds[] = {"jpeg", "png", "webp", "gif", "avif", "tiff"};
inline bool is_picture(std::string_view kind) {
  return std::find(std::begin(picture_kinds), std::end(picture_kinds), kind) != std::end(picture_kinds);
}

/// A codec, and the header that has it; without one, `spelled` is empty.
struct codec_choice {
  std::string spelled;
  std::string header;
};

inline codec_choice simple_codec(std::string_view name) {
  return {"ps::" + std::string(name), "penstock/codec/" + std::string(name) + ".hpp"};
}

/// For bytes that look like this in the rows that were looked at.
inline codec_choice codec_of_kinds(const std::set<std::string>& kinds) {
  const auto among = [&](std::initializer_list<std::string_view> few) {
    return std::all_of(kinds.begin(), kinds.end(), [&](const std::string& one) {
      return std::find(few.begin(), few.end(), one) != few.end();
    });
  };
  if (kinds.empty()) return simple_codec("identity");
  const std::string& first = *kinds.begin();
  if (kinds.size() == 1 && first.starts_with("npy "))
    return {"ps::npy<" + first.substr(4) + ">", "penstock/codec/npy.hpp"};
  if (kinds.size() == 1 && first != "bytes") return simple_codec(first);
  if (std::all_of(kinds.begin(), kinds.end(), &is_picture)) {
    std::string list;
    for (const std::string& one : kinds) list.append(list.empty() ? "" : ", ").append("ps::").append(one);
    return {"ps::image_of<" + list + ">", "penstock/codec/image_of.hpp"};
  }
  if (among({"integer", "floating"})) return simple_codec("floating");
  return simple_codec(among({"integer", "floating", "text", "json"}) ? "text" : "identity");
}

/// The C++ type of what MosaicML, LitData and Arrow call their numbers, or nothing.
inline std::string_view type_of_number(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> known[] = {
      {"int8", "std::int8_t"},     {"int16", "std::int16_t"},   {"int32", "std::int32_t"},
      {"int64", "std::int64_t"},   {"uint8", "std::uint8_t"},   {"uint16", "std::uint16_t"},
      {"uint32", "std::uint32_t"}, {"uint64", "std::uint64_t"}, {"float16", "ps::half"},
      {"halffloat", "ps::half"},   {"float32", "float"},        {"float64", "double"},
      {"float", "float"},          {"double", "double"},        {"bool", "bool"}};
  for (const auto& [spelled, type] : known)
    if (name == spelled) return type;
  return {};
}

inline codec_choice raw_number_of(std::string_view type) {
  return {"ps::raw_number<" + std::string(type) + ">", "penstock/codec/raw_number.hpp"};
}

/// For a column of MDS.
inline codec_choice codec_of_mds(const std::string& encoding, const std::set<std::string>& kinds) {
  if (encoding == "int") return raw_number_of("std::int64_t");
  if (const auto type = type_of_number(encoding); !type.empty()) return raw_number_of(type);
  if (encoding == "str" || encoding == "str_decimal") return simple_codec("text");
  if (encoding == "str_int") return simple_codec("integer");
  if (encoding == "str_float") return simple_codec("floating");
  if (encoding == "json" || encoding == "jpeg" || encoding == "png") return simple_codec(encoding);
  if (encoding == "pil") return simple_codec("pil_pixels");
  if (encoding == "bytes") return codec_of_kinds(kinds);
  if (encoding.starts_with("ndarray:")) {
    const std::string dtype = encoding.substr(8, encoding.find(':', 8) - 8);
    return {"ps::mds_array<" + std::string(type_of_number(dtype)) + ">", "penstock/codec/mds_array.hpp"};
  }
  return {};
}

/// For a leaf of LitData.
inline codec_choice codec_of_litdata(const std::string& format, const std::set<std::string>& kinds) {
  if (format == "int") return raw_number_of("std::int64_t");
  if (format == "float64") return raw_number_of("double");
  if (format == "uint8") return raw_number_of("std::uint8_t");  // LitData's bool
  if (format == "str") return simple_codec("text");
  if (format == "jpeg" || format == "png") return simple_codec(format);
  if (format == "pil") return simple_codec("pil_pixels");
  if (kinds.size() == 1 && kinds.begin()->starts_with("litdata_array"))
    return {"ps::" + *kinds.begin(), "penstock/codec/litdata_array.hpp"};
  if (format == "bytes") return codec_of_kinds(kinds);
  return {};
}

/// For a field of FFCV. `raw`: whether all images that were looked at are pixels.
inline codec_choice codec_of_ffcv(const std::string& type, const std::set<std::string>& kinds) {
  if (type == "int64") return raw_number_of("std::int64_t");
  if (type == "float64") return raw_number_of("double");
  if (type == "image") return {"ps::ffcv_image<ps::jpeg>", "penstock/codec/ffcv_image.hpp"};
  if (type == "json") return simple_codec("json");
  if (type == "bytes") return codec_of_kinds(kinds);
  return codec_of_mds(type, kinds);
}

/// The C++ type of a value in a list of Arrow, or nothing. `nulls`: whether lists have nulls in them.
inline std::string type_in_arrow_list(std::string type, bool nulls) {
  const auto inside = [](std::string_view of) {
    const std::size_t begin = of.find('<') + 1;
    return std::string(of.substr(begin, of.rfind('>') - begin));
  };
  if (type.starts_with("dictionary<")) type = inside(type);
  std::string made;
  for (const std::string_view list : {"list<", "large_list<", "fixed_size_list<"})
    if (type.starts_with(list))
      if (const std::string one = type_in_arrow_list(inside(type), nulls); !one.empty() && one != "bool")
        made = "std::vector<" + one + ">";
  if (const std::string_view number = type_of_number(type); !number.empty()) made = number;
  for (const std::string_view text :
       {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"})
    if (type == text) made = "std::string";
  for (const std::string_view counted : {"date", "time", "duration"})
    if (type.starts_with(counted)) made = "std::int64_t";
  return nulls && !made.empty() ? "std::optional<" + made + ">" : made;
}

/// For a column of Arrow: "int64", "list<float>", "dictionary<string>".
inline codec_choice codec_of_arrow(std::string type, const std::set<std::string>& kinds, bool nulls,
                                   bool nulls_inside) {
  const auto value = [nulls](const std::string& of) {
    return codec_choice{"ps::arrow_value<" + (nulls ? "std::optional<" + of + ">" : of) + ">",
                        "penstock/codec/arrow_value.hpp"};
  };
  if (type.starts_with("dictionary<")) type = type.substr(11, type.size() - 12);
  for (const std::string_view binary : {"binary", "large_binary", "binary_view"})
    if (type == binary) return nulls ? value("std::string_view") : codec_of_kinds(kinds);
  const auto bytes = [&](const std::string& count) { return value("std::array<std::byte, " + count + ">"); };
  if (type.starts_with("fixed_size_binary[")) return bytes(type.substr(18, type.size() - 19));
  if (type.starts_with("decimal"))
    return bytes(std::to_string(std::stoul(type.substr(7, type.find('(') - 7)) / 8));
  if (type.find("list<") != type.npos) {
    const std::string list = type_in_arrow_list(type, nulls_inside);
    if (list.empty()) return {};
    return value(nulls_inside ? list.substr(14, list.size() - 15)
                              : list);  // the list itself is no std::optional
  }
  const std::string one = type_in_arrow_list(type, false);
  return one.empty() ? codec_choice{} : value(one == "std::string" ? "std::string_view" : one);
}

}  // namespace inspection

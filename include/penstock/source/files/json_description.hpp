// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/files/json_description.hpp needs nlohmann-json: link penstock::json"
#endif

#include <penstock/core/known_formats.hpp>

#include <nlohmann/json.hpp>

namespace penstock::inline v0_1::detail {

/// Parses a description that others wrote, nested at most `deepest` deep. Throws `errc::format`, with
/// the offset where it is known.
[[nodiscard]] inline nlohmann::json parse_description(std::string_view text, int deepest = 16) {
  // The parser's message repeats the whole text or number it was reading, so it is cut.
  const auto not_json = [text](const nlohmann::json::exception& e) {
    if (const std::string_view known = known_format(bytes_of(text)); !known.empty() && !text.starts_with('{'))
      return detail::text({"the description is not JSON: it is ", known});
    const std::string_view said = e.what();
    constexpr std::size_t maximum = 300;
    return detail::text(
        {"the description is not JSON: ", said.substr(0, maximum), said.size() > maximum ? "..." : ""});
  };
  // a one-byte bracket becomes an object of 70 bytes
  const auto shallow = [deepest](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
    if (depth > deepest)
      throw error(errc::format, {"the description is nested more than ", deepest, " deep"});
    return true;
  };
  try {
    return nlohmann::json::parse(text.begin(), text.end(), shallow);
  } catch (const nlohmann::json::parse_error& e) {
    throw error(errc::format, not_json(e)).at_offset(e.byte == 0 ? 0 : e.byte - 1);
  } catch (const nlohmann::json::exception& e) {  // a number beyond the range of a double
    throw error(errc::format, not_json(e));
  }
}

/// `work()`, for which a value of another kind is errc::format: `saying`, and what the parser says. Errors
/// name the file.
template <class Work>
decltype(auto) in_json_file(std::string_view path, std::string_view saying, Work&& work) {
  return in_file(path, [&]() -> decltype(auto) {
    try {
      return work();
    } catch (const nlohmann::json::exception& e) {
      throw error(errc::format, {saying, e.what()});
    }
  });
}

/// A whole number of JSON that fits a type. Throws errc::format for what is none, with the name that it has
/// in its object: a conversion would be undefined for 1e99, and truncate others.
template <std::integral T>
[[nodiscard]] T whole_number(const nlohmann::json& value, std::string_view name) {
  if (value.is_number_unsigned()) {
    if (const auto number = value.get<std::uint64_t>(); std::in_range<T>(number))
      return static_cast<T>(number);
  } else if (value.is_number_integer()) {
    if (const auto number = value.get<std::int64_t>(); std::in_range<T>(number))
      return static_cast<T>(number);
  }
  const std::string there = value.is_number() ? value.dump() : value.type_name();
  throw error(errc::format, {"\"", name, "\" should be a whole number of ", 8 * sizeof(T), " bits, and is ",
                             value.is_number() ? "" : "JSON of the type ", there});
}

/// The number of this name in an entry of a description, which is `of` for the error: "a shard".
[[nodiscard]] inline std::uint64_t count_at(const nlohmann::json& object, const char* key,
                                            std::string_view of) {
  if (!object.contains(key) || !object[key].is_number_unsigned())
    throw error(errc::format, {of, " has no '", key, "' that is a number"});
  return object[key].get<std::uint64_t>();
}

/// The whole number of this name in an object, which must have it. Throws as `whole_number`.
template <std::integral T>
[[nodiscard]] T number_at(const nlohmann::json& object, const char* name) {
  return whole_number<T>(object.at(name), name);
}

}  // namespace penstock::inline v0_1::detail

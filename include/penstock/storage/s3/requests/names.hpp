// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/storage/s3/requests/http_call.hpp>

namespace penstock::inline v0_1::detail::s3 {

[[noreturn, gnu::cold]] inline void refuse_bucket(std::string_view name, std::string_view why) {
  throw error(errc::argument, {"the bucket '", name.substr(0, 80), "' ", why});
}

/// Whether the name is four numbers with dots between them.
[[nodiscard]] constexpr bool looks_like_ipv4(std::string_view name) noexcept {
  int numbers = 1;
  std::size_t digits = 0;
  for (const char c : name) {
    if (c == '.') {
      if (digits == 0) return false;
      ++numbers;
      digits = 0;
    } else if (!is_digit(c) || ++digits > 3) {
      return false;
    }
  }
  return numbers == 4 && digits != 0;
}

/// Throws errc::argument, with what is wrong, for a name that no bucket can have. `strict` is what AWS
/// demands; other stores, and the oldest buckets of AWS, may have capitals, underscores and 255 characters.
/// Source: Amazon S3 User Guide, "General purpose bucket naming rules".
inline void check_bucket(std::string_view name, bool strict = true) {
  if (name.find_first_of("@:?") != std::string_view::npos && !name.starts_with("arn:"))
    throw error(errc::argument,
                "a bucket's name has no '@', ':' or '?': write s3://bucket/key, and give credentials by the "
                "environment or by options, which no message shows");
  if (name.starts_with("arn:"))
    refuse_bucket(name,
                  "is an ARN, which is not supported: give the access point's alias, or the bucket's name");
  if (name.ends_with("--x-s3"))
    refuse_bucket(name,
                  "is a directory bucket, whose sessions are not supported: use a general purpose bucket");
  if (name.size() < 3) refuse_bucket(name, "is shorter than 3 characters");
  if (name.size() > (strict ? 63u : 255u))
    refuse_bucket(name, strict ? "is longer than 63 characters" : "is longer than 255 characters");
  for (const char c : name) {
    if (is_digit(c) || (is_letter(c) && !is_upper(c)) || c == '.' || c == '-') continue;
    if (!strict && (is_upper(c) || c == '_')) continue;
    refuse_bucket(name, strict ? "has a character that is no lower-case letter, digit, '.' or '-'"
                               : "has a character that is no letter, digit, '.', '-' or '_'");
  }
  if (name.find("..") != std::string_view::npos) refuse_bucket(name, "has two dots in a row");
  if (!strict) return;
  if (name.front() == '.' || name.front() == '-' || name.back() == '.' || name.back() == '-')
    refuse_bucket(name, "must begin and end with a letter or a digit");
  if (looks_like_ipv4(name)) refuse_bucket(name, "has the form of an IP address");
  if (name.starts_with("xn--") || name.starts_with("sthree-"))
    refuse_bucket(name, "begins with letters that AWS reserves");
}

/// Where an object is.
struct object_name {
  std::string_view bucket;
  std::string_view key;
};

/// `bucket/key` or `s3://bucket/key`, of which the object's key is everything after the first slash, as it
/// is: nothing is decoded, and `?` and `#` belong to it. Throws errc::argument that says what to write.
[[nodiscard]] inline object_name parse_object_name(std::string_view name) {
  const std::string_view given = name;
  if (name.starts_with("s3://")) {
    name.remove_prefix(5);
  } else if (name.substr(0, name.find('/')).ends_with(':')) {
    throw error(errc::argument,
                {"'", given.substr(0, name.find(':')),
                 ":' is not the scheme of an object in S3: write s3://bucket/key or bucket/key"});
  }
  const std::size_t slash = name.find('/');
  const bool plain = given.find_first_of("@?") == std::string_view::npos && name.find(':') == name.npos;
  const std::string shown =
      plain ? text({"'", given.substr(0, 200), "' is "}) : std::string("the name of an object in S3 is ");
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == name.size())
    throw error(errc::argument, {shown, slash == 0 ? "without a bucket" : "without a key",
                                 ": write s3://bucket/key or bucket/key"});
  const object_name found{name.substr(0, slash), name.substr(slash + 1)};
  if (found.key.size() > 1024)
    throw error(errc::argument, {"a key of S3 has at most 1024 bytes, '", found.key.substr(0, 80),
                                 "...' has ", found.key.size()});
  return found;
}

}  // namespace penstock::inline v0_1::detail::s3

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/cache/staged_object.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/detail/url_scheme.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <map>

namespace penstock::inline v0_1::detail::staging {

/// The parts of a name between its slashes.
[[nodiscard]] PENSTOCK_INLINE std::vector<std::string> parts_of(const std::string& name, bool is_path) {
  std::string text = name;
  if (is_path) {
    text = std::filesystem::absolute(name).lexically_normal().string();
  } else if (const std::string scheme = scheme_of(name); scheme != "file") {
    text.erase(0, text.find("://") + 3);
    if (scheme.starts_with("http")) text.resize(std::min(text.size(), text.find_first_of("?#")));
  }
  if (text.empty() || text.back() == '/' || text == "." || text.ends_with("/.") ||
      text.find('\0') != std::string::npos)
    throw error(errc::argument,
                "an object needs a name that can be that of a file, and this is none; name "
                "the objects themselves, not their folder")
        .in_file(name);
  std::vector<std::string> parts;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    if (!part.empty() && part != ".") parts.emplace_back(part);
  }
  return parts;
}

PENSTOCK_INLINE std::vector<std::string> staged_names(std::span<const std::string> names, bool are_paths) {
  std::vector<std::vector<std::string>> all;
  for (const std::string& name : names) all.push_back(parts_of(name, are_paths));
  std::size_t common = all.empty() ? 0 : all[0].size() - 1;
  for (const auto& parts : all) {
    common = std::min(common, parts.size() - 1);
    for (std::size_t i = 0; i < common; ++i)
      if (parts[i] != all[0][i]) common = i;
  }
  std::vector<std::string> files;
  std::map<std::string, std::size_t, std::less<>> numbers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string file;
    for (std::size_t k = common; k < all[i].size(); ++k) {
      const std::string& part = all[i][k];
      if (part == "..")
        throw error(errc::argument, "a name with '..' may lead out of the folder; name the object without it")
            .in_file(names[i]);
      if (part.starts_with(".penstock"))
        throw error(errc::argument,
                    "names that begin with .penstock are those of files that Penstock keeps "
                    "beside others; leave this object out, or give it another name")
            .in_file(names[i]);
      file.append(file.empty() ? "" : "/").append(part);
    }
    if (const auto [there, is_new] = numbers.emplace(file, i); !is_new)
      throw error(errc::argument, {"this object and ", names[there->second], " would both be the file ", file,
                                   "; stage them into different folders"})
          .in_file(names[i]);
    files.push_back(std::move(file));
  }
  for (std::size_t i = 0; i < files.size(); ++i)
    for (std::size_t at = files[i].find('/'); at != std::string::npos; at = files[i].find('/', at + 1))
      if (const auto there = numbers.find(std::string_view(files[i]).substr(0, at)); there != numbers.end())
        throw error(errc::argument, {"the file of ", names[there->second],
                                     " would be the folder of this one; stage them into different folders"})
            .in_file(names[i]);
  return files;
}
PENSTOCK_INLINE const whole_copy* record::copy_of(const file_facts& found) const noexcept {
  if (last && last->wrote(found)) return &*last;
  if (before && before->wrote(found)) return &*before;
  return nullptr;
}

PENSTOCK_INLINE std::string to_text(const record& what) {
  std::string all(record_head);
  append(all, {"object ", what.object.size(), " ", what.object, "\nfile ", what.file.size(), " ", what.file,
               "\n"});
  const auto add = [&all](std::string_view word, const std::optional<whole_copy>& one) {
    if (one)
      append(all, {word, one->of.size, " ", one->of.stamp, " ", one->file.size, " ", one->file.changed, " ",
                   one->file.inode, " ", one->file.born, "\n"});
  };
  add("before ", what.before);
  add("last ", what.last);
  if (what.part)
    append(all,
           {"part ", what.part->size, " ", what.part->stamp, " ", what.boot.size(), " ", what.boot, "\n"});
  append(all, {"sum ", fingerprint().add(all).value(), "\n"});
  return all;
}

PENSTOCK_INLINE std::optional<record> parse_record(std::string_view text) {
  std::string_view rest = text;
  const auto skip = [&rest](std::uint64_t size) {
    rest.remove_prefix(to_size(std::min<std::uint64_t>(size, rest.size())));
  };
  const auto take = [&](std::string_view word) {
    const bool is_next = rest.starts_with(word);
    if (is_next) skip(word.size());
    return is_next;
  };
  const auto number = [&] {  // and the character after it
    std::uint64_t value = 0;
    const char* const end = std::from_chars(rest.data(), rest.data() + rest.size(), value).ptr;
    skip(static_cast<std::uint64_t>(end - rest.data()) + 1);
    return value;
  };
  const auto word = [&] {  // with its length before it, and the end of the line
    const std::uint64_t size = number();
    std::string found(rest.substr(0, to_size(std::min<std::uint64_t>(size, rest.size()))));
    skip(found.size() + 1);
    return found;
  };
  const auto copy = [&] {
    whole_copy found;
    for (std::uint64_t* const one : {&found.of.size, &found.of.stamp, &found.file.size, &found.file.changed,
                                     &found.file.inode, &found.file.born})
      *one = number();
    found.file.regular = true;
    return found;
  };
  record found;
  if (!take(record_head) || !take("object ")) return std::nullopt;
  found.object = word();
  if (!take("file ")) return std::nullopt;
  found.file = word();
  if (take("before ")) found.before = copy();
  if (take("last ")) found.last = copy();
  if (take("part ")) {
    found.part.emplace();
    found.part->size = number();
    found.part->stamp = number();
    found.boot = word();
  }
  if (to_text(found) != text) return std::nullopt;
  return found;
}

}  // namespace penstock::inline v0_1::detail::staging

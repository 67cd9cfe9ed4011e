// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/split_files.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <system_error>

namespace penstock::inline v0_1::detail {

struct split_words {
  std::string_view name;
  std::array<std::string_view, 4> words;
};
inline constexpr std::array<split_words, 3> known_splits{
    {{"train", {"train", "training"}},
     {"validation", {"validation", "valid", "dev", "val"}},
     {"test", {"test", "testing", "eval", "evaluation"}}}};

inline char lower_letter(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

PENSTOCK_INLINE bool same_letters(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, {}, &lower_letter, &lower_letter);
}

// "valid" is "validation"; other names are themselves.
PENSTOCK_INLINE std::string_view split_called(std::string_view name) noexcept {
  for (const split_words& one : known_splits)
    for (const std::string_view word : one.words)
      if (!word.empty() && same_letters(word, name)) return one.name;
  return name;
}

PENSTOCK_INLINE bool has_word(std::string_view name, std::string_view word) noexcept {
  const auto ends = [&](std::size_t at) {
    return at == name.size() || std::string_view("-._ 0123456789").find(name[at]) != name.npos;
  };
  for (std::size_t at = 0; !word.empty() && at + word.size() <= name.size(); ++at)
    if ((at == 0 || ends(at - 1)) && ends(at + word.size()) &&
        same_letters(name.substr(at, word.size()), word))
      return true;
  return false;
}

PENSTOCK_INLINE bool is_called_after(std::string_view name, std::string_view split) noexcept {
  const std::string_view called = split_called(split);
  for (const split_words& one : known_splits)
    if (one.name == called)
      return std::ranges::any_of(one.words, [&](std::string_view word) { return has_word(name, word); });
  return has_word(name, split);
}

// Calls `is(part)` for the folders of a path, or for its last part, until it is true.
template <class Is>
bool any_part(std::string_view path, split_place where, const Is& is) {
  const std::size_t last = path.rfind('/') + 1;
  if (where == split_place::file) return is(path.substr(last));
  for (std::size_t begin = 0; begin < last;) {
    const std::size_t end = path.find('/', begin);
    if (is(path.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

PENSTOCK_INLINE bool says_split(std::string_view path, split_place where) noexcept {
  return any_part(path, where, [](std::string_view part) {
    return std::ranges::any_of(known_splits,
                               [&](const split_words& one) { return is_called_after(part, one.name); });
  });
}

PENSTOCK_INLINE std::string_view numbered_name::split() const noexcept {
  std::string_view name = front;
  while (!name.empty() && std::string_view("-._").find(name.back()) != name.npos) name.remove_suffix(1);
  return name;
}

PENSTOCK_INLINE std::optional<numbered_name> numbered_name_of(std::string_view path) noexcept {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t of = name.rfind("-of-");
  if (of == name.npos) return std::nullopt;
  std::size_t digits = of;
  while (digits != 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  numbered_name made{name.substr(0, digits)};
  const char* const end = name.data() + name.size();
  const auto [behind, failed] = std::from_chars(name.data() + of + 4, end, made.count);
  const bool ended = behind == end || *behind == '.' || *behind == '-' || *behind == '_';
  if (digits == of || made.split().empty() || failed != std::errc{} || !ended ||
      std::from_chars(name.data() + digits, name.data() + of, made.number).ec != std::errc{})
    return std::nullopt;
  return made;
}

PENSTOCK_INLINE std::vector<files_of_split> in_usual_order(
    std::map<std::string, std::vector<std::size_t>, std::less<>> found) {
  std::vector<files_of_split> made;
  for (const split_words& one : known_splits)
    if (const auto at = found.find(one.name); at != found.end()) {
      made.push_back({at->first, std::move(at->second)});
      found.erase(at);
    }
  for (auto& [name, files] : found) made.push_back({name, std::move(files)});
  return made;
}

PENSTOCK_INLINE std::vector<files_of_split> splits_at(std::span<const std::string> paths, split_place where) {
  std::map<std::string, std::vector<std::size_t>, std::less<>> found;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string_view path = paths[i];
    if (where == split_place::sharded) {
      const auto name =
          path.starts_with("data/") && path.find('/', 5) == path.npos ? numbered_name_of(path) : std::nullopt;
      if (name && name->front.ends_with('-'))
        found[std::string(name->front.substr(0, name->front.size() - 1))].push_back(i);
      continue;
    }
    for (const split_words& one : known_splits)
      if (any_part(path, where, [&](std::string_view part) { return is_called_after(part, one.name); }))
        found[std::string(one.name)].push_back(i);
  }
  return in_usual_order(std::move(found));
}

// Files that are numbered as belonging to several sets, whatever these are called.
PENSTOCK_INLINE std::vector<files_of_split> numbered_sets(std::span<const std::string> paths) {
  std::map<std::string, std::vector<std::size_t>, std::less<>> found;
  for (std::size_t i = 0; i < paths.size(); ++i)
    if (const auto name = numbered_name_of(paths[i])) found[std::string(name->split())].push_back(i);
  if (found.size() < 2) found.clear();
  return in_usual_order(std::move(found));
}

PENSTOCK_INLINE std::vector<files_of_split> splits_of(std::span<const std::string> paths) {
  for (const split_place where : {split_place::sharded, split_place::folder, split_place::file})
    if (auto found = splits_at(paths, where); !found.empty()) return found;
  return numbered_sets(paths);
}

PENSTOCK_INLINE std::size_t common_folder(std::span<const std::string> names) noexcept {
  if (names.empty()) return 0;
  std::size_t same = names.front().size();
  for (const std::string& name : names)
    same = static_cast<std::size_t>(
        std::ranges::mismatch(name, std::string_view(names.front()).substr(0, same)).in1 - name.begin());
  return same == 0 ? 0 : names.front().rfind('/', same - 1) + 1;
}

PENSTOCK_INLINE std::vector<std::string> relative_paths(std::span<const std::string> names) {
  const std::size_t common = common_folder(names);
  std::vector<std::string> made;
  for (const std::string& name : names) {
    const bool url = name.find("://") != name.npos;
    made.push_back(name.substr(common, url ? name.find('?', common) - common : name.npos));
  }
  return made;
}

PENSTOCK_INLINE std::string call_text(const source_call& call, std::string_view behind) {
  if (call.folder.empty()) return text({call.source, "(storage, ", behind, ")"});
  return text({call.source, "(\"", call.folder, "\", ", behind, ")"});
}
PENSTOCK_INLINE error in_folder(error made, const source_call& call) {
  if (!call.folder.empty()) made.in_file(call.folder);
  return made;
}
PENSTOCK_INLINE std::string_view place_called(const source_call& call) noexcept {
  return call.folder.empty() ? "storage" : "folder";
}
PENSTOCK_INLINE std::string names_text(const std::vector<files_of_split>& splits) {
  std::string line;
  for (const files_of_split& one : splits) append(line, {line.empty() ? "" : ", ", one.name});
  return line;
}

[[noreturn]] PENSTOCK_INLINE void choose_a_split(const std::vector<files_of_split>& splits,
                                                 std::string_view more, const source_call& call) {
  throw in_folder(error(errc::argument,
                        {"the ", place_called(call), " has the ", splits.size() == 1 ? "split " : "splits ",
                         names_text(splits), more, ": choose one, as in ",
                         call_text(call, text({"split(\"", splits.front().name, "\")"})),
                         ", or read all files as one dataset with split(\"all\")"}),
                  call);
}

PENSTOCK_INLINE void refuse_several_splits(std::span<const std::string> relative, const source_call& call) {
  const std::vector<files_of_split> splits = splits_of(relative);
  if (splits.empty()) return;
  std::set<std::size_t> named;
  for (const files_of_split& one : splits) named.insert(one.files.begin(), one.files.end());
  if (named.size() != relative.size()) {
    std::size_t other = 0;
    while (named.contains(other)) ++other;
    choose_a_split(splits, text({", and files of none, such as '", relative[other], "'"}), call);
  }
  // "eval_train" has two names, and is one.
  if (std::ranges::any_of(splits,
                          [&](const files_of_split& one) { return one.files != splits.front().files; }))
    choose_a_split(splits, "", call);
  if (const auto sets = numbered_sets(relative); !sets.empty()) choose_a_split(sets, "", call);
}

PENSTOCK_INLINE std::vector<std::size_t> files_of(std::span<const std::string> relative,
                                                  const named_split& wanted, const source_call& call) {
  std::vector<std::size_t> all(relative.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (wanted.name == "all") return all;
  const std::vector<files_of_split> splits = splits_of(relative), sets = numbered_sets(relative);
  const auto set = std::ranges::find(sets, wanted.name, &files_of_split::name);
  if (set != sets.end()) {  // and those of the split that have no number
    std::vector<std::size_t> chosen = set->files;
    for (const files_of_split& one : splits)
      if (one.name == wanted.name)
        std::ranges::copy_if(one.files, std::back_inserter(chosen),
                             [&](std::size_t i) { return !numbered_name_of(relative[i]).has_value(); });
    std::ranges::sort(chosen);
    return chosen;
  }
  const auto made = [&](std::vector<std::size_t> chosen) {
    std::vector<std::string> paths;
    for (const std::size_t i : chosen) paths.push_back(relative[i]);
    if (const auto several = numbered_sets(paths); !several.empty()) choose_a_split(several, "", call);
    return chosen;
  };
  const std::string_view called = split_called(wanted.name);
  for (const files_of_split& one : splits)
    if (one.name == wanted.name || split_called(one.name) == called) return made(one.files);
  for (const split_place where : {split_place::folder, split_place::file}) {
    std::erase_if(all, [&](std::size_t i) {
      return !any_part(relative[i], where,
                       [&](std::string_view part) { return is_called_after(part, wanted.name); });
    });
    if (!all.empty()) return made(std::move(all));
    all.resize(relative.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
  }
  if (splits.empty())
    throw in_folder(error(errc::missing, {"there is no split '", wanted.name, "': no file or folder in the ",
                                          place_called(call), " is called after one; leave split(\"",
                                          wanted.name, "\") out to read all files"}),
                    call);
  throw in_folder(error(errc::missing, {"there is no split '", wanted.name, "' in the ", place_called(call),
                                        ", which has the splits ", names_text(splits)}),
                  call);
}

PENSTOCK_INLINE void check_numbered_files(std::span<const std::string> paths, const source_call& call) {
  struct counted {
    std::string_view path;
    std::set<std::size_t> numbers;
  };
  std::map<std::string_view, std::map<std::size_t, counted>> sets;  // by folder and front, and by count
  for (const std::string& path : paths) {
    const auto name = numbered_name_of(path);
    if (!name) continue;
    const auto front = static_cast<std::size_t>(name->front.data() + name->front.size() - path.data());
    counted& set = sets[std::string_view(path).substr(0, front)][name->count];
    if (set.path.empty()) set.path = path;
    if (!set.numbers.insert(name->number).second)
      throw in_folder(error(errc::argument, {"two files called '", std::string_view(path).substr(0, front),
                                             "...' are number ", name->number, " of ", name->count,
                                             ": delete the older one, or name the files to read"}),
                      call);
  }
  for (const auto& [front, counts] : sets) {
    auto whole = counts.begin();  // the largest that is, if one is
    for (auto at = counts.begin(); at != counts.end(); ++at)
      if (at->second.numbers.size() == at->first) whole = at;
    const auto& [count, set] = *whole;
    if (counts.size() > 1) {
      const auto other = counts.begin()->first == count ? std::next(counts.begin()) : counts.begin();
      const std::string_view name = set.path, behind = name.substr(front.size());
      throw in_folder(
          error(errc::argument,
                {"'", set.path, "' and '", other->second.path,
                 "' count different numbers of files, as if the dataset had been written twice: delete the "
                 "files "
                 "of the older one, or name the others, as in ",
                 call.folder.empty()
                     ? text({"'", front, "*", behind.substr(behind.find("-of-")), "'"})
                     : text({call.source, "(\"", front, "*", behind.substr(behind.find("-of-")), "\")"})}),
          call);
    }
    if (set.numbers.size() == count) continue;
    std::size_t missing = set.numbers.contains(count) ? 1 : 0;  // some count from one
    while (set.numbers.contains(missing)) ++missing;
    throw in_folder(error(errc::missing, {"the ", place_called(call), " has ", set.numbers.size(), " of the ",
                                          count, " files that '", set.path, "' counts, and lacks number ",
                                          missing, ": fetch the others, or name the files to read"}),
                    call);
  }
}

PENSTOCK_INLINE std::vector<std::string> names_of_split(std::span<const std::string> names,
                                                        const named_split& wanted, const source_call& call) {
  std::vector<std::string> relative = relative_paths(names), chosen;
  if (splits_of(relative).empty() && !names.empty()) {
    // All of them may be in the folder of a split.
    const std::string_view common = std::string_view(names.front()).substr(0, common_folder(names));
    const std::size_t slash = common.size() < 2 ? common.npos : common.rfind('/', common.size() - 2);
    const std::string_view last = common.substr(slash == common.npos ? 0 : slash + 1);
    for (std::string& path : relative) path.insert(0, last);
  }
  for (const std::size_t i : files_of(relative, wanted, call)) chosen.push_back(names[i]);
  return chosen;
}

}  // namespace penstock::inline v0_1::detail

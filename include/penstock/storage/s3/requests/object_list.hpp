// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>
#include <penstock/storage/s3/list_result.hpp>
#include <penstock/storage/s3/requests/store.hpp>

#include <unordered_map>

namespace penstock::inline v0_1::detail::s3 {

/// Objects by their names, `s3://bucket/key`.
struct object_names {
  std::vector<std::string> names;
  std::string pattern;

  [[nodiscard]] object_name operator[](std::size_t at) const {
    const std::string_view name = std::string_view(names[at]).substr(5);
    const std::size_t slash = name.find('/');
    return {name.substr(0, slash), name.substr(slash + 1)};
  }
};

/// What all keys begin with, up to a whole character.
[[nodiscard]] inline std::string common_prefix(std::span<const std::string_view> keys) {
  std::string_view common = keys.empty() ? std::string_view() : keys.front();
  for (const std::string_view one : keys) {
    std::size_t same = 0;
    while (same < common.size() && same < one.size() && common[same] == one[same]) ++same;
    common = common.substr(0, same);
  }
  // The bytes of a character in UTF-8 after its first are 10xxxxxx; its first says how many.
  std::size_t end = common.size(), after = 0;
  while (end != 0 && after < 4 && (static_cast<unsigned char>(common[end - 1]) & 0xC0u) == 0x80u)
    --end, ++after;
  const unsigned first = end == 0 ? 0u : static_cast<unsigned char>(common[end - 1]);
  const std::size_t wanted = first >= 0xF0u ? 3 : first >= 0xE0u ? 2 : first >= 0xC0u ? 1 : 0;
  return std::string(wanted > after ? common.substr(0, end - 1) : common);
}

/// The objects of a bucket whose keys begin with a prefix, page by page. A page that failed can be asked for
/// again.
class bucket_list {
 public:
  bucket_list(std::string_view bucket, std::string prefix)
      : bucket_(bucket), name_(text({"s3://", bucket, "/", prefix})), listing_(std::move(prefix)) {}

  [[nodiscard]] bool done() const noexcept { return listing_.done(); }
  [[nodiscard]] list_page next(store& with) {
    store_call call;
    call.bucket = bucket_;
    call.name = name_;
    call.doing = "list objects";
    call.query = listing_.query();
    call.max_body = std::size_t{8} << 20;
    with.perform(call);
    if (!call.succeeded()) throw call.failure_of_answer();
    if (call.reply.cut) throw call.failure({"a page of the list of objects has more than 8 MiB"}).recurring();
    return in_file(name_, [&] { return listing_.accept(call.reply.body); });
  }

 private:
  std::string bucket_, name_;
  object_listing listing_;
};

/// The names of the objects that begin so; see `s3::list`.
[[nodiscard]] inline std::vector<std::string> names_in(store& with, std::string_view text_of_prefix,
                                                       const retry_policy& policy) {
  std::string_view rest = text_of_prefix;
  if (rest.starts_with("s3://")) rest.remove_prefix(5);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view bucket = rest.substr(0, slash);
  const std::string prefix(rest.substr(std::min(slash + 1, rest.size())));
  if (bucket.empty() || bucket.find_first_of("@:?") != std::string_view::npos)
    throw error(errc::argument, "what is listed is a bucket and perhaps a prefix: write s3://bucket/prefix");
  std::vector<std::string> names;
  retrier retries(policy);
  for (bucket_list list(bucket, prefix); !list.done();) {
    const list_page page = retries.insist([&] { return list.next(with); });
    for (const listed_object& one : page.objects) {
      if (one.size == 0 && one.key.ends_with('/')) continue;
      const std::string_view last = std::string_view(one.key).substr(one.key.rfind('/') + 1);
      if (last.find(".penstock-") == std::string_view::npos)
        names.push_back(text({"s3://", bucket, "/", one.key}));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Looks for many objects of a bucket at once, by listing what their keys have in common: until all are
/// found, the list ends, or so many others have gone by that it is better to ask for each.
class bucket_search {
 public:
  /// Keys are those of `names`, which outlives this.
  bucket_search(const object_names& names, std::string_view bucket, const std::vector<object_id>& ids)
      : maximum_(max_listed(ids.size())), pages_(bucket, common_prefix(keys_of(names, ids))) {
    for (const object_id id : ids) open_.emplace(names[id].key, id);
  }

  /// The most objects that are listed while that many are looked for.
  [[nodiscard]] static std::size_t max_listed(std::size_t wanted) noexcept { return 10'000 + 10 * wanted; }

  [[nodiscard]] bool done() const noexcept { return open_.empty() || pages_.done() || seen_ >= maximum_; }
  /// Asks for the next page. One that failed is asked for again.
  [[nodiscard]] list_page next(store& with) { return pages_.next(with); }
  /// Calls `found(id, entry)` for each wanted object of a page.
  template <class Found>
  void take(const list_page& page, Found&& found) {
    for (const listed_object& one : page.objects) {
      const auto [begin, end] = open_.equal_range(one.key);
      for (auto at = begin; at != end; ++at) found(at->second, one);
      open_.erase(begin, end);
    }
    seen_ += page.objects.size();
  }
  /// The objects that do not exist: a list that ended does not have them. Stores that put folders together
  /// list keys with empty ones under other names.
  [[nodiscard]] std::vector<object_id> missing() const {
    std::vector<object_id> all;
    if (!pages_.done()) return all;
    for (const auto& [key, id] : open_)
      if (!key.starts_with('/') && key.find("//") == std::string_view::npos) all.push_back(id);
    return all;
  }

 private:
  [[nodiscard]] static std::vector<std::string_view> keys_of(const object_names& names,
                                                             const std::vector<object_id>& ids) {
    std::vector<std::string_view> keys;
    keys.reserve(ids.size());
    for (const object_id id : ids) keys.push_back(names[id].key);
    return keys;
  }

  std::size_t maximum_, seen_ = 0;
  bucket_list pages_;
  std::unordered_multimap<std::string_view, object_id> open_;  // not found yet
};

}  // namespace penstock::inline v0_1::detail::s3

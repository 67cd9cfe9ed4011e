// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>
#include <penstock/storage/s3/list_result.hpp>
#include <penstock/storage/s3/requests/object_list.hpp>
#include <penstock/storage/s3/requests/store.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace penstock::inline v0_1::detail::s3 {

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

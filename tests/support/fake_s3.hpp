// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/s3/requests/http_call.hpp>

#include "support/web_server.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock_test {

/// An error as stores send it, whose sentence repeats what was signed.
inline std::string s3_refusal(std::string_view status, std::string_view code, std::string_view headers = {},
                              std::string_view more = {}) {
  return web_answer(status,
                    std::string(headers) + "Content-Type: application/xml\r\nx-amz-request-id: R1\r\n",
                    "<?xml version=\"1.0\"?><Error><Code>" + std::string(code) +
                        "</Code><Message>SeCrEt</Message>" + std::string(more) + "</Error>");
}

/// A store in this process with one bucket, `bucket`, that is only read: HEAD, GET with ranges and If-Match,
/// and lists in pages. It looks at no signature, and writes each request down as `GET /bucket/key`.
class fake_s3 {
 public:
  /// What answers a request in the store's place, if it returns something.
  using hook = std::function<std::optional<std::string>(const web_request&)>;

  explicit fake_s3(std::size_t page = 1000)
      : page_(page), server_(answering([this](const web_request& request) { return answer(request); })) {}

  /// Puts an object, or replaces it: an ETag is of a key and a version.
  void put(const std::string& key, std::string bytes) {
    const std::scoped_lock lock(mutex_);
    object& one = objects_[key];
    one.bytes = std::move(bytes);
    one.tag = "\"" + std::to_string(std::hash<std::string>()(key)) + "-" + std::to_string(++versions_) + "\"";
  }
  void remove(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    objects_.erase(key);
  }
  void set_hook(hook asked_first) {
    const std::scoped_lock lock(mutex_);
    hook_ = std::move(asked_first);
  }
  void list_without_tags() {
    const std::scoped_lock lock(mutex_);
    lists_tags_ = false;
  }

  [[nodiscard]] std::string endpoint() const { return server_.at(""); }
  [[nodiscard]] std::uint16_t port() const noexcept { return server_.port(); }
  [[nodiscard]] std::vector<std::string> requests() const { return log_.all(); }
  void clear_requests() { log_.clear(); }
  /// How many requests there were, of lists, of HEAD, and of all.
  [[nodiscard]] std::size_t lists() const { return count("GET /bucket?"); }
  [[nodiscard]] std::size_t heads() const { return count("HEAD "); }
  [[nodiscard]] std::size_t all() const { return count(""); }

 private:
  struct object {
    std::string bytes, tag;
  };

  [[nodiscard]] std::size_t count(std::string_view begin) const {
    const auto all = log_.all();
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const std::string& one) { return one.starts_with(begin); }));
  }
  [[nodiscard]] static std::string decoded(std::string_view text) {
    return penstock::detail::s3::form_decoded(text).value_or("");
  }
  std::string answer(const web_request& request) {
    log_.add(request.method() + " " + request.target());
    const std::scoped_lock lock(mutex_);
    if (hook_)
      if (auto instead = hook_(request)) return *instead;
    const std::string target = request.target();
    if (target.starts_with("/bucket?")) return page(target.substr(8));
    const auto found =
        objects_.find(decoded(std::string_view(target).substr(std::min<std::size_t>(8, target.size()))));
    if (found != objects_.end()) return web_object(request, found->second.bytes, found->second.tag);
    if (request.method() == "HEAD") return "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    return s3_refusal("404 Not Found", "NoSuchKey");
  }
  [[nodiscard]] std::string page(std::string_view query) const {
    std::string prefix, after;
    while (!query.empty()) {
      const std::string_view item = query.substr(0, query.find('&'));
      query.remove_prefix(std::min(item.size() + 1, query.size()));
      if (item.starts_with("prefix=")) prefix = decoded(item.substr(7));
      if (item.starts_with("continuation-token=")) after = decoded(item.substr(19));
    }
    std::string body = "<ListBucketResult><EncodingType>url</EncodingType>";
    std::size_t entries = 0;
    std::string last;
    bool more = false;
    for (auto at = after.empty() ? objects_.lower_bound(prefix) : objects_.upper_bound(after);
         at != objects_.end() && at->first.starts_with(prefix); ++at) {
      if ((more = entries == page_)) break;
      ++entries;
      last = at->first;
      body += "<Contents><Key>" + penstock::detail::s3::percent_encoded(last, true) + "</Key><Size>" +
              std::to_string(at->second.bytes.size()) + "</Size>";
      if (lists_tags_) body += "<ETag>" + at->second.tag + "</ETag>";
      body += "</Contents>";
    }
    body += more
                ? "<IsTruncated>true</IsTruncated><NextContinuationToken>" + last + "</NextContinuationToken>"
                : "<IsTruncated>false</IsTruncated>";
    return web_answer("200 OK", "", body + "</ListBucketResult>");
  }

  std::size_t page_;
  mutable std::mutex mutex_;
  std::map<std::string, object> objects_;
  std::size_t versions_ = 0;
  bool lists_tags_ = true;
  hook hook_;
  web_log log_;
  web_server server_;  // ends first
};

}  // namespace penstock_test
